import { Option, type Command } from "commander";
import { loadWorkerConfig } from "../config/load-config.ts";
import { print } from "../text/output.ts";
import { runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { untilSignal } from "../process/until-signal.ts";
import { readVersion } from "../process/version.ts";
import { workerRows } from "../text/worker-text.ts";

interface WorkerFlags {
  readonly config: string;
  readonly role?: string;
}

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
    .addOption(
      new Option(
        "--role <role>",
        "Watch and enqueue (watch), run handlers (work), or both (default: KONVERGE_ROLE, or all)",
      ).choices(["watch", "work", "all"]),
    )
    .addHelpText(
      "after",
      "\nStart any number of workers. SIGTERM and SIGINT drain the worker: running attempts may finish within KONVERGE_SHUTDOWN_GRACE. A second signal aborts\nthem, a third ends the process immediately.",
    )
    .action(async ({ config: path, role }: WorkerFlags) => {
      traceErrors();
      const env = role === undefined ? process.env : { ...process.env, KONVERGE_ROLE: role };
      const { startWorkerProcess } = await import("@konverge/worker");
      const { config, settings } = await loadWorkerConfig(path, env);
      const worker = await startWorkerProcess({ config, settings, version: readVersion() });
      await untilSignal(() => void worker.kill());
      await worker.stop();
    });
  withClient(
    group.command("list").description("List live workers with role, version and controllers"),
  ).action((flags: ClientFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const list = await client.workers.list({ cluster });
      print(flags.output, {
        document: list,
        items: list.items,
        names: list.items.map(({ workerId }) => workerId),
        table: () => workerRows(list.items),
        empty: "no live workers; start one with konverge worker --config <file>",
      });
    }),
  );
}

/** Frames between a handler and the call that failed are Konverge's; with 10 in all, the handler's would be missing. */
const STACK_FRAMES = 40;

/** Makes errors show where the code of handlers threw them, in its sources if they have source maps. */
function traceErrors(): void {
  Error.stackTraceLimit = Math.max(Error.stackTraceLimit, STACK_FRAMES);
  process.setSourceMapsEnabled(true);
}
