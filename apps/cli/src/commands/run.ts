import { parseLabels } from "@konverge/contracts";
import { defined } from "@konverge/core";
import { Option, type Command } from "commander";
import { print, printNote } from "../text/output.ts";
import { runRows } from "../text/run-text.ts";
import {
  groupHelp,
  runWithClient,
  withClient,
  withIdempotencyKey,
  withServer,
} from "../ask/run-with-client.ts";
import {
  RUN_ID,
  RUN_OPTIONS,
  showRun,
  showWhenEnded,
  withWait,
  type WaitFlags,
} from "../ask/show-run.ts";
import { runFilterOf, withRunFilter, type RunFilterFlags } from "../ask/run-filter.ts";
import { pick, showPages, withPages, type PageFlags } from "../ask/show-pages.ts";
import { readJson } from "../ask/read-json.ts";
import { systemUser } from "../ask/system-user.ts";
import { addRunControlCommands } from "./run-control.ts";
import { addRunExportCommand } from "./run-export.ts";
import { addRunRaiseCommand } from "./run-raise.ts";
import { addRunRetryCommand } from "./run-retry.ts";
import { addSignalCommand } from "./run-signal.ts";
import { addRunLogsCommand } from "./run-logs.ts";
import { addRunUpdateCommand } from "./run-update.ts";
import { addRunWatchCommand } from "./run-watch.ts";

interface StartFlags extends WaitFlags {
  readonly input?: string;
  readonly id?: string;
  readonly key?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly onExisting: "attach" | "reject" | "supersede" | "queue";
  readonly by?: string;
  readonly idempotencyKey?: string;
}
type ListFlags = PageFlags & RunFilterFlags;
const HELP = `
  konverge run start release --input '{"version":"1.4.0","folder":"/tmp/releases"}' --key release/1.4.0
  konverge run start release --input @release.json --wait --timeout 10m
  konverge run get release/default/6f1b
  konverge run signal release/default/6f1b approve --payload '{"by":"ann"}'
  konverge run signal approve --workflow release --label team=web --reason "reviewed"
  konverge run update release/default/6f1b resize --payload '{"size":3}'
  konverge run list release -o name
  konverge run list --status blocked --search web
  konverge run list --label region=eu --since 2h --error step_failed
  konverge run watch release/default/6f1b
  konverge run cancel release/default/6f1b --reason "wrong version"
  konverge run pause release/default/6f1b --reason "freeze"
  konverge run resume release/default/6f1b --reason "thawed"
  konverge run pause --workflow release --label team=web --reason "freeze"
  konverge run terminate release/default/6f1b --reason "its objects were deleted"
  konverge run raise release/default/6f1b --steps 5000 --reason "many items"
  konverge run retry release/default/6f1b --from-failed-step --reason "quota raised"
  konverge run export release/default/6f1b --out test/release.json`;

export function addRunCommand(program: Command): void {
  const group = program
    .command("run")
    .description("Start, inspect, signal, pause, cancel, terminate and retry workflow runs")
    .addHelpText("afterAll", groupHelp(HELP));
  addStart(group);
  addGet(group);
  addList(group);
  addSignalCommand(group);
  addRunUpdateCommand(group);
  addRunLogsCommand(group);
  addRunControlCommands(group);
  addRunRaiseCommand(group);
  addRunRetryCommand(group);
  addRunWatchCommand(group);
  addRunExportCommand(group);
}

function addStart(group: Command): void {
  withWait(
    withIdempotencyKey(
      withClient(
        group
          .command("start")
          .description("Start a run of a workflow")
          .argument("<workflow>", "Workflow name"),
      ),
    ),
  )
    .option("--input <json>", "Input as JSON; @file reads a file, @- standard input")
    .option("--id <id>", "Run ID; starting the same ID again returns that run (default: a UUID)")
    .option("--key <key>", "Key; at most one run per key is active")
    .option("--label <name=value>", "Label, by which runs are found; repeat it for more", addLabel)
    .addOption(
      new Option("--on-existing <what>", "Action if another run has the key")
        .choices(["attach", "reject", "supersede", "queue"])
        .default("attach"),
    )
    .option("--by <name>", "Author (default: system user)")
    .action((workflow: string, flags: StartFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const { input, onExisting, idempotencyKey, wait, output, by = systemUser() } = flags;
          const body = {
            workflow,
            cluster,
            onExisting,
            by,
            ...(input === undefined ? {} : { input: await readJson("--input", input) }),
            ...pick(flags, ["id", "key"]),
            ...defined({ labels: flags.label }),
          };
          const write = idempotencyKey === undefined ? {} : { idempotencyKey };
          const started = await client.runs.start(body, write);
          if (wait === true) return await showWhenEnded(client, started.id, flags);
          print(output, { document: started, names: [started.id], table: () => started.id });
          if (!started.created) printNote(`${started.id} already existed`);
        },
        RUN_OPTIONS,
      ),
    );
}

function addLabel(text: string, before: Readonly<Record<string, string>> = {}) {
  return { ...before, ...parseLabels(text) };
}

function addGet(group: Command): void {
  withWait(
    withServer(
      group
        .command("get")
        .description("Show the status, steps, waits and result of a run")
        .argument("<run>", RUN_ID),
    ),
  ).action((id: string, flags: WaitFlags) =>
    runWithClient(flags, async ({ client }) => {
      if (flags.wait === true) return await showWhenEnded(client, id, flags);
      showRun(flags, await client.runs.get(id));
    }),
  );
}

function addList(group: Command): void {
  withRunFilter(
    withPages(
      withClient(
        group
          .command("list")
          .description("List runs, newest first")
          .argument("[workflow]", "Workflow name (default: all)"),
      ),
    ),
  ).action((workflow: string | undefined, flags: ListFlags) =>
    runWithClient(
      flags,
      ({ client, cluster }) => {
        const list = client.runs.list({
          cluster,
          limit: Number(flags.limit),
          ...defined({ workflow }),
          ...pick(flags, ["cursor"]),
          ...runFilterOf(flags),
        });
        return showPages(flags, list, {
          nameOf: ({ id }) => id,
          table: runRows,
          empty: "no runs found",
        });
      },
      RUN_OPTIONS,
    ),
  );
}
