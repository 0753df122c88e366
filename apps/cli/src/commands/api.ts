import { readSettings } from "@konverge/contracts";
import type { Command } from "commander";
import { loadCodec } from "../process/load-codec.ts";
import { untilSignal } from "../process/until-signal.ts";
import { readVersion } from "../process/version.ts";

export function addApiCommand(program: Command): void {
  program
    .command("api")
    .description("Serve the HTTP API, dashboard and raw job view")
    .action(async () => {
      const { startApi } = await import("@konverge/api");
      const settings = readSettings({ env: process.env });
      const codec = await loadCodec(settings.codec);
      const api = await startApi({ settings, version: readVersion(), codec });
      await untilSignal();
      await api.stop();
    });
}
