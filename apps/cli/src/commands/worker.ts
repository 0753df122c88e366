import { Option, type Command } from "commander";
import { loadWorkerConfig } from "../config/load-config.ts";
import { withClient } from "../ask/run-with-client.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";
import { serveUntilSignal } from "../process/serve-until-signal.ts";
import { readVersion } from "../process/version.ts";
import { describeNoWorkers } from "../text/describe-no-workers.ts";
import { workerRows } from "../text/worker-text.ts";

/** The environment variable that each option sets. */
const VARIABLES = {
  cluster: "KONVERGE_CLUSTER",
  role: "KONVERGE_ROLE",
  runRetention: "KONVERGE_RUN_RETENTION",
  runRecordLimit: "KONVERGE_RUN_RECORD_LIMIT_KIB",
  runRecheck: "KONVERGE_RUN_RECHECK",
  runSweep: "KONVERGE_RUN_SWEEP",
} as const;

type WorkerFlags = { readonly config: string } & {
  readonly [Flag in keyof typeof VARIABLES]?: string;
};

export function addWorkerCommand(program: Command): void {
  const group = program
    .command("worker")
    .description("Run and list workers")
    .addHelpText(
      "after",
      "\nkonverge worker --config <file> is short for konverge worker run --config <file>.",
    );
  group
    .command("run", { isDefault: true })
    .description("Run the controllers and workflows of a configuration")
    .requiredOption(
      "--config <file>",
      "TypeScript or JavaScript file with defineConfig as default export (required)",
    )
    .option(
      "--cluster <name>",
      "One cluster of the configuration to serve (default: KONVERGE_CLUSTER, or all)",
    )
    .addOption(
      new Option(
        "--role <role>",
        "Watch and enqueue (watch), run handlers (work), or both (default: KONVERGE_ROLE, or all)",
      ).choices(["watch", "work", "all"]),
    )
    .option(
      "--run-retention <duration>",
      "Time that ended runs are kept (default: KONVERGE_RUN_RETENTION, or 7d)",
    )
    .option(
      "--run-record-limit <KiB>",
      "Largest record or result of a run (default: KONVERGE_RUN_RECORD_LIMIT_KIB, or 1024)",
    )
    .option(
      "--run-recheck <duration>",
      "Time between two checks of a blocked run (default: KONVERGE_RUN_RECHECK, or 1m)",
    )
    .option(
      "--run-sweep <duration>",
      "Time between two searches for lost wake-ups (default: KONVERGE_RUN_SWEEP, or 5s)",
    )
    .addHelpText(
      "after",
      "\nStart any number of workers. SIGTERM and SIGINT drain the worker: running attempts may finish within KONVERGE_SHUTDOWN_GRACE. A second signal aborts\nthem, a third ends the process immediately.",
    )
    .action(async ({ config: path, ...flags }: WorkerFlags) => {
      traceErrors();
      const env = { ...process.env, ...variablesOf(flags) };
      await serveUntilSignal(async (stopping) => {
        const { startWorkerProcess } = await import("@konverge/worker");
        const { config, settings } = await loadWorkerConfig(path, env);
        return await startWorkerProcess({ config, settings, version: readVersion(), stopping });
      });
    });
  withWatch(
    withClient(
      group.command("list").description("List live workers with role, version and controllers"),
    ),
  ).action((flags: WatchFlags) =>
    runWatched(flags, async ({ client, cluster }) => {
      const [list, clusters] = await Promise.all([
        client.workers.list({ cluster }),
        client.clusters.list(),
      ]);
      const served = clusters.items.map(({ name }) => name);
      return {
        document: list,
        items: list.items,
        names: list.items.map(({ workerId }) => workerId),
        table: () => workerRows(list.items),
        empty: describeNoWorkers(cluster, served),
      };
    }),
  );
}

function variablesOf(flags: Omit<WorkerFlags, "config">): Record<string, string> {
  const given = Object.entries(VARIABLES).map(([flag, name]) => [
    name,
    flags[flag as keyof typeof VARIABLES],
  ]);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
}

/** Frames between a handler and the call that failed are Konverge's; with 10 in all, the handler's would be missing. */
const STACK_FRAMES = 40;

/** Makes errors show where the code of handlers threw them, in its sources if they have source maps. */
function traceErrors(): void {
  Error.stackTraceLimit = Math.max(Error.stackTraceLimit, STACK_FRAMES);
  process.setSourceMapsEnabled(true);
}
