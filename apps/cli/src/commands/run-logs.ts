import type { Command } from "commander";
import { print } from "../text/output.ts";
import { logRows } from "../text/run-text.ts";
import { runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { RUN_ID } from "../ask/show-run.ts";

/** Adds `run logs`, which prints the last log lines of a run. */
export function addRunLogsCommand(group: Command): void {
  withServer(
    group.command("logs").description("Print the log of a run").argument("<run>", RUN_ID),
  ).action((id: string, flags: ClientFlags) =>
    runWithClient(flags, async ({ client }) => {
      const log = await client.runs.logs(id);
      print(flags.output, {
        document: log,
        items: log.items,
        names: log.items.map(({ message }) => message),
        table: () => logRows(log.items),
        empty: "the run has logged nothing",
      });
    }),
  );
}
