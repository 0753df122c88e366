import type { Command } from "commander";
import { groupHelp, withServer } from "../ask/run-with-client.ts";
import { limitRows } from "../text/limit-text.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

const HELP = `
  konverge limit list
  konverge limit list -o json

Limits are defined in "limits" of the configuration. All workers of the
installation share them.`;

export function addLimitCommand(program: Command): void {
  const limit = program
    .command("limit")
    .description("Inspect the limits of external services")
    .addHelpText("afterAll", groupHelp(HELP));
  withWatch(withServer(limit.command("list").description("List each limit with its use"))).action(
    (flags: WatchFlags) =>
      runWatched(flags, async ({ client }) => {
        const list = await client.limits.list();
        return {
          document: list,
          items: list.items,
          names: list.items.map(({ name }) => name),
          table: () => limitRows(list.items),
          empty: "no limits found; add limits to the configuration and start a worker",
        };
      }),
  );
}
