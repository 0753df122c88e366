import type { ReconcileState } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { ProblemError } from "@konverge/client";
import { exitCodeOf } from "../process/exit-codes.ts";
import { oneLine } from "../process/explain-failure.ts";
import { findController } from "../ask/find-controller.ts";
import { print, say } from "../text/output.ts";
import { KEY_OPTIONS, keyQueryOf, withKeyFilters, type KeyFlags } from "../ask/key-filters.ts";
import { keyRows } from "../text/queue-text.ts";
import { stateNotes, stateRows } from "../text/reconcile-text.ts";
import { targetsOf, type Target } from "../ask/targets-of.ts";
import { showPages, withPages } from "../ask/show-pages.ts";
import { addWatchCommand } from "./watch.ts";
import {
  groupHelp,
  orderOf,
  runWithClient,
  withClient,
  withIdempotencyKey,
  withOrder,
  withServer,
  type Asking,
  type ClientFlags,
  type OrderFlags,
} from "../ask/run-with-client.ts";
import { timeoutOption } from "../ask/timeout-option.ts";

interface EnqueueFlags extends ClientFlags {
  readonly namespace?: string;
  readonly reason?: string;
  readonly wait?: boolean;
  readonly timeout: number;
  readonly dryRun?: boolean;
  readonly idempotencyKey?: string;
}
const HELP = `
  konverge reconcile enqueue node-pool blue -n demo --reason "deploy 4711" --wait
  konverge reconcile enqueue node-pool blue green red -n demo -o name
  konverge object list --phase backoff -o name | xargs konverge reconcile enqueue
  konverge reconcile get 'node-pool/default/nodepools.demo.konverge.dev/demo/blue@17'
  konverge reconcile list --phase backoff -n demo
  konverge reconcile cancel 'node-pool/default/nodepools.demo.konverge.dev/demo/blue@17' --reason "the wrong one"`;

/** Outcomes after which nothing is left to do for the one who asked. */
const GOOD: readonly (string | undefined)[] = ["done", "requeueAfter", "awaitChange"];

export function addReconcileCommand(program: Command): void {
  const reconcile = program
    .command("reconcile")
    .description("ask for reconciles, wait for them, see what they did")
    .addHelpText("after", groupHelp(HELP));

  withIdempotencyKey(
    withClient(
      reconcile
        .command("enqueue")
        .description("ask that objects are reconciled now; requests of one object coalesce")
        .argument("<controller>", "its name, or the first of keys")
        .argument("[name...]", "the objects, up to 1000"),
    ),
  )
    .option("-n, --namespace <name>", "of the objects; left out for cluster-scoped ones")
    .option("--reason <text>", "why; shown in the objects' history")
    .option("--wait", "until all are finished; ends with 1 when one did not end well")
    .addOption(timeoutOption())
    .option("--dry-run", "only check that it could be asked for")
    .action((controller: string, names: readonly string[], flags: EnqueueFlags) =>
      runWithClient(flags, (asking) => enqueue(asking, [controller, ...names], flags), {
        options: Object.fromEntries(
          names.map((name, index) => [`/items/${index}/name`, JSON.stringify(name)]),
        ),
      }),
    );
  withServer(
    reconcile
      .command("get")
      .description("how requests stand")
      .argument("<request...>", "ids, as they were answered"),
  ).action((ids: readonly string[], flags: ClientFlags) =>
    runWithClient(flags, async ({ client }) => {
      showStates(flags, await Promise.all(ids.map((id) => client.reconciles.get(id))), ids);
    }),
  );
  withKeyFilters(
    withPages(
      withClient(
        reconcile.command("list").description("what is requested and has not ended, by object"),
      ),
    ),
  ).action((flags: KeyFlags) =>
    runWithClient(
      flags,
      ({ client, cluster }) =>
        showPages(flags, client.reconciles.list(keyQueryOf(flags, cluster)), {
          nameOf: ({ key }) => key,
          table: keyRows,
          empty: "nothing is requested",
        }),
      KEY_OPTIONS,
    ),
  );
  addWatchCommand(reconcile);
  withOrder(
    withServer(
      reconcile
        .command("cancel")
        .description("withdraw one request; what others requested goes on")
        .argument("<request>", "its id, as it was answered"),
    ),
  ).action((id: string, flags: OrderFlags) =>
    runWithClient(flags, async ({ client }) => {
      const { order, write } = orderOf(flags);
      if (flags.dryRun === true) {
        showStates(flags, [await client.reconciles.get(id)], [id]);
        return say("dry run; this is how it stands, and nothing was cancelled");
      }
      const answer = await client.reconciles.cancel(id, order, write);
      print(flags.output, { document: answer, names: [answer.id], table: () => answer.result });
    }),
  );
}

async function enqueue(
  { client, cluster }: Asking,
  words: readonly [string, ...string[]],
  flags: EnqueueFlags,
): Promise<void> {
  const { output, reason, idempotencyKey } = flags;
  const targets = targetsOf(words, { cluster, namespace: flags.namespace });
  const bodies = targets.map((target) => (reason === undefined ? target : { ...target, reason }));
  const names = targets.map(({ name }) => name);
  if (flags.dryRun === true) {
    for (const target of targets) await checkTarget(client, target);
    print(output, {
      document: { items: bodies },
      items: bodies,
      names,
      table: () => `${names.length} would be requested`,
    });
    return;
  }
  const write = idempotencyKey === undefined ? {} : { idempotencyKey };
  const [only] = bodies;
  if (bodies.length === 1 && only !== undefined) {
    const accepted = await client.reconciles.create(only, write);
    if (flags.wait === true) return await waitForAll({ client }, [accepted.id], flags);
    return print(output, { document: accepted, names: [accepted.id], table: () => accepted.id });
  }
  const answer = await client.reconciles.createMany(bodies, write);
  const ids = answer.items.flatMap((item) => ("id" in item ? [item.id] : []));
  for (const [index, item] of answer.items.entries()) {
    if ("error" in item) say(`konverge: ${names[index]}: ${oneLine(item.error.detail)}`);
  }
  const [refused] = answer.items.flatMap((item) => ("error" in item ? [item.error] : []));
  if (refused !== undefined) process.exitCode = exitCodeOf(refused);
  if (flags.wait === true && ids.length > 0) return await waitForAll({ client }, ids, flags);
  print(output, {
    document: answer,
    items: answer.items,
    names: ids,
    table: () => ids.join("\n"),
    empty: "nothing was accepted",
  });
}

/** Bounded, so that a thousand waits do not take a thousand connections. */
const WAITS_AT_ONCE = 20;

async function waitForAll(
  { client }: Pick<Asking, "client">,
  ids: readonly string[],
  flags: EnqueueFlags,
): Promise<void> {
  const states: ReconcileState[] = [];
  const left = [...ids.entries()];
  const endMs = performance.now() + flags.timeout;
  if (process.stderr.isTTY)
    say(`waiting for ${ids.length === 1 ? ids[0] : `${ids.length} requests`}`);
  let late: ProblemError | undefined;
  const run = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, id] = next;
      try {
        const timeoutMs = Math.max(0, endMs - performance.now());
        states[index] = await client.reconciles.wait(id, { timeoutMs });
      } catch (error) {
        if (!(error instanceof ProblemError) || error.code !== "wait_timeout") throw error;
        late = error;
        states[index] = await client.reconciles.get(id);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(WAITS_AT_ONCE, ids.length) }, run));
  showStates(flags, states, ids);
  // The worst is told: what failed, then what was not there, then what did not end.
  const ended = states.filter(({ phase }) => phase === "finished");
  const failed = ended.filter(({ outcome }) => !GOOD.includes(outcome));
  if (late !== undefined) say(`konverge: ${oneLine(late.message)}`);
  if (failed.some(({ outcome }) => outcome !== "gone")) process.exitCode = 1;
  else if (failed.length > 0) process.exitCode = exitCodeOf({ code: "not_found", status: 404 });
  else if (late !== undefined) process.exitCode = exitCodeOf(late);
}

function showStates(
  { output }: ClientFlags,
  states: readonly ReconcileState[],
  ids: readonly string[],
): void {
  print(output, {
    document: states.length === 1 ? states[0] : { items: states },
    items: states,
    names: ids,
    table: () => stateRows(states),
  });
  for (const note of states.flatMap(stateNotes)) say(`konverge: ${oneLine(note)}`);
}

/** What the server would refuse. */
async function checkTarget(
  client: Asking["client"],
  { cluster, controller, namespace }: Target,
): Promise<void> {
  const known = await findController({ client, cluster }, controller);
  const isNamespaced = known.scope === "Namespaced";
  if (isNamespaced === (namespace !== undefined)) return;
  const detail = isNamespaced
    ? `${known.kind} is namespaced; say which`
    : `${known.kind} is cluster-scoped; leave it out`;
  const issues = [{ pointer: "/namespace", detail }];
  throw new KonvergeError("invalid_request", detail, { issues });
}
