import { startWorker } from "@konverge/worker";
import type { Command } from "commander";
import { loadWorkerConfig } from "../load-config.ts";
import { untilSignal } from "../until-signal.ts";
import { readVersion } from "../version.ts";

export function addWorkerCommand(program: Command): void {
  program
    .command("worker")
    .description("run the controllers of a configuration file; start it as often as you like")
    .requiredOption(
      "--config <file>",
      "TypeScript or JavaScript file with a default export of defineConfig",
    )
    .action(async ({ config: path }: { readonly config: string }) => {
      const { config, settings } = await loadWorkerConfig(path, process.env);
      const worker = await startWorker({ config, settings, version: readVersion() });
      await untilSignal();
      await worker.stop();
    });
}
