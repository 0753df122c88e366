import { readSettings } from "@konverge/contracts";
import type { Command } from "commander";
import { untilSignal } from "../process/until-signal.ts";
import { readVersion } from "../process/version.ts";

export function addApiCommand(program: Command): void {
  program
    .command("api")
    .description("Serve the HTTP API, dashboard and raw job view")
    .action(async () => {
      const { startApi } = await import("@konverge/api");
      const api = await startApi({
        settings: readSettings({ env: process.env }),
        version: readVersion(),
      });
      await untilSignal();
      await api.stop();
    });
}
