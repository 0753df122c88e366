import { readSettings, type GuardList, type Settings } from "@konverge/contracts";
import { findRateIssue, isKonvergeError, KonvergeError } from "@konverge/core";
import { openGuardControl, type GuardControl, type GuardView, type Order } from "@konverge/guard";
import { createControllerRegistry } from "@konverge/queue";
import { InvalidArgumentError, Option, type Command } from "commander";
import { explainGuardFailure } from "../guard-failure.ts";
import { guardDetails, guardRows } from "../guard-text.ts";
import { systemUser } from "../system-user.ts";

interface ShowFlags {
  readonly output: "table" | "json";
}
interface OrderFlags extends ShowFlags {
  readonly by?: string;
  readonly reason: string;
}
/** Of `set-rate`: the configured rate again. */
const CONFIGURED = "configured";

const HELP = `
A worker's cluster is "default" unless KONVERGE_CLUSTER says otherwise. Redis is found by KONVERGE_REDIS_URL, the
installation in it by KONVERGE_PREFIX; no cluster and no HTTP API is needed.

  konverge guard list
  konverge guard show default -o json
  konverge guard isolate default --reason "etcd is being restored"
  konverge guard reset default --reason "etcd is back" --by ada
  konverge guard set-rate default 50 --reason "the server is slow today"
  konverge guard set-rate default ${CONFIGURED} --reason "it is fast again"

Orders hold for all workers at once, also for those that start later, and are kept, with who gave them and why. Work
that may not call the API server waits: it does not fail and uses up no attempt.
Exit codes: 0 done, 2 something to correct in what was typed or set, 3 no such guard, 6 Redis is away.`;

export function addGuardCommand(program: Command): void {
  const guard = program
    .command("guard")
    .description("see what protects the API servers, and give it orders")
    .addHelpText("after", HELP);

  withOutput(guard.command("list").description("the guards of all clusters")).action(
    ({ output }: ShowFlags) =>
      runGuard(undefined, async (settings, control) => {
        const items = await listGuards(settings, control);
        print(output, { items } satisfies GuardList, guardRows(items));
      }),
  );
  withOutput(
    withCluster(guard.command("show")).description(
      "one guard, with its last transitions and what caused them",
    ),
  ).action((cluster: string, { output }: ShowFlags) =>
    runGuard(cluster, async (_settings, control) => {
      const view = await readView(control, cluster);
      print(output, view, guardDetails(view));
    }),
  );
  withOrder(
    withCluster(guard.command("isolate")).description(
      "send nothing to the API server any more, until reset; work waits",
    ),
  ).action((cluster: string, flags: OrderFlags) =>
    giveOrder(cluster, flags, (control, order) => control.isolate(cluster, order)),
  );
  withOrder(
    withCluster(guard.command("reset")).description(
      "close the breaker: at a fifth of the rate, as after an outage",
    ),
  ).action((cluster: string, flags: OrderFlags) =>
    giveOrder(cluster, flags, (control, order) => control.reset(cluster, order)),
  );
  withOrder(
    withCluster(guard.command("set-rate"))
      .description("set the rate of the whole fleet, at once and until it is given back")
      .argument(
        "<rate>",
        `calls per second, or "${CONFIGURED}" for the configured rate`,
        parseRate,
      ),
  ).action((cluster: string, rate: number | typeof CONFIGURED, flags: OrderFlags) =>
    giveOrder(cluster, flags, (control, order) =>
      control.setRate(cluster, rate === CONFIGURED ? undefined : rate, order),
    ),
  );
}

function withCluster(command: Command): Command {
  return command.argument("<cluster>", "its name, as `konverge guard list` shows it");
}

function withOutput(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "what to print")
      .choices(["table", "json"])
      .default("table"),
  );
}

function withOrder(command: Command): Command {
  return withOutput(command)
    .requiredOption("--reason <text>", "why; kept, and shown to all")
    .option("--by <name>", "who; default: the user of this system");
}

/** What went wrong is one line here, for people at night and for scripts; what nobody foresaw stays an error. */
async function runGuard(
  cluster: string | undefined,
  work: (settings: Settings, control: GuardControl) => Promise<void>,
): Promise<void> {
  let redisUrl: string | undefined;
  try {
    const settings = readSettings({ env: process.env });
    ({ redisUrl } = settings);
    await using control = openGuardControl({ redis: { url: redisUrl }, prefix: settings.prefix });
    await work(settings, control);
  } catch (thrown) {
    if (!isKonvergeError(thrown)) throw thrown;
    const { line, exitCode } = explainGuardFailure(thrown, { cluster, redisUrl });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: the client of a Redis that is away lives on for two seconds after it was told to end.
    process.exit(exitCode);
  }
}

function giveOrder(
  cluster: string,
  { by, reason, output }: OrderFlags,
  give: (control: GuardControl, order: Order) => Promise<void>,
): Promise<void> {
  return runGuard(cluster, async (_settings, control) => {
    await give(control, { by: by ?? systemUser(), reason });
    const view = await readView(control, cluster);
    print(output, view, guardRows([view]));
  });
}

async function listGuards(
  { redisUrl, prefix, cluster }: Settings,
  control: GuardControl,
): Promise<GuardView[]> {
  // Asked first because it knows why Redis is away, which the registry's deadline does not.
  await control.read(cluster);
  const registry = createControllerRegistry({ redis: { url: redisUrl }, prefix, cluster });
  try {
    const clusters = await registry.listClusters();
    const views = await Promise.all(clusters.map((name) => control.read(name)));
    return views.filter((view) => view !== undefined);
  } finally {
    await registry.close();
  }
}

async function readView(control: GuardControl, cluster: string): Promise<GuardView> {
  const view = await control.read(cluster);
  if (view !== undefined) return view;
  throw new KonvergeError("not_found", `no worker has guarded a cluster "${cluster}" yet`);
}

function parseRate(text: string): number | typeof CONFIGURED {
  if (text === CONFIGURED) return CONFIGURED;
  const rate = text.trim() === "" ? Number.NaN : Number(text);
  const issue = findRateIssue(rate);
  if (issue === undefined) return rate;
  throw new InvalidArgumentError(`It ${issue}, or "${CONFIGURED}".`);
}

function print(output: ShowFlags["output"], document: unknown, text: string): void {
  process.stdout.write(`${output === "json" ? JSON.stringify(document, null, 2) : text}\n`);
}
