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
    .description("run controllers and workflows, and see who runs them")
    .addHelpText(
      "after",
      "\n`konverge worker --config <file>` is `konverge worker run --config <file>`.",
    );
  group
    .command("run", { isDefault: true })
    .description(
      "run the controllers and workflows of a configuration file; start it as often as you like",
    )
    .requiredOption(
      "--config <file>",
      "TypeScript or JavaScript file with a default export of defineConfig",
    )
    .addOption(
      new Option(
        "--role <role>",
        "make requests (watch), run handlers (work), or both; default KONVERGE_ROLE, else all",
      ).choices(["watch", "work", "all"]),
    )
    .addHelpText(
      "after",
      "\nSIGTERM and SIGINT drain: running attempts may end within KONVERGE_DRAIN_GRACE. A second signal aborts them\nat once, a third ends the process on the spot.",
    )
    .action(async ({ config: path, role }: WorkerFlags) => {
      const env = role === undefined ? process.env : { ...process.env, KONVERGE_ROLE: role };
      const { startWorkerProcess } = await import("@konverge/worker");
      const { config, settings } = await loadWorkerConfig(path, env);
      const worker = await startWorkerProcess({ config, settings, version: readVersion() });
      await untilSignal(() => void worker.kill());
      await worker.stop();
    });
  withClient(group.command("list").description("the live workers")).action((flags: ClientFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const list = await client.workers.list({ cluster });
      print(flags.output, {
        document: list,
        items: list.items,
        names: list.items.map(({ workerId }) => workerId),
        table: () => workerRows(list.items),
        empty: "no worker runs; start one: konverge worker --config <file>",
      });
    }),
  );
}
