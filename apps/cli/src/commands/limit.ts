import type { Command } from "commander";
import { groupHelp, runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { limitRows } from "../text/limit-text.ts";
import { print } from "../text/output.ts";

const HELP = `
  konverge limit list
  konverge limit list -o json

Limits are defined in "limits" of the configuration. All workers of the
installation share them.`;

export function addLimitCommand(program: Command): void {
  const limit = program
    .command("limit")
    .description("Inspect the limits of external services")
    .addHelpText("after", groupHelp(HELP));
  withServer(limit.command("list").description("List each limit with its use")).action(
    (flags: ClientFlags) =>
      runWithClient(flags, async ({ client }) => {
        const list = await client.limits.list();
        print(flags.output, {
          document: list,
          items: list.items,
          names: list.items.map(({ name }) => name),
          table: () => limitRows(list.items),
          empty: "no limits found; add limits to the configuration and start a worker",
        });
      }),
  );
}
