import { readSettings } from "@konverge/contracts";
import type { Command } from "commander";
import { loadCodec } from "../process/load-codec.ts";
import { serveUntilSignal } from "../process/serve-until-signal.ts";
import { readVersion } from "../process/version.ts";

export function addApiCommand(program: Command): void {
  program
    .command("api")
    .description("Serve the HTTP API, dashboard and raw job view")
    .action(async () => {
      await serveUntilSignal(async () => {
        const { startApi } = await import("@konverge/api");
        const settings = readSettings({ env: process.env });
        const codec = await loadCodec(settings.codec);
        return await startApi({ settings, version: readVersion(), codec });
      });
    });
}
