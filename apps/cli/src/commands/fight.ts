import type { Fights } from "@konverge/contracts";
import type { Command } from "commander";
import { columns, type Cell } from "../text/columns.ts";
import { print } from "../text/output.ts";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";

interface ListFlags extends ClientFlags {
  readonly hours: string;
}

const HELP = `
  konverge fight list --hours 24
  konverge object history node-pool blue -n demo      # who won against it, and where`;

export function addFightCommand(program: Command): void {
  const fight = program
    .command("fight")
    .description("objects that several field managers write against each other")
    .addHelpText("after", groupHelp(HELP));

  withClient(
    fight
      .command("list")
      .description("most fought objects, fields that go to and fro, keys slowed down for it"),
  )
    .option("--hours <n>", "how far back, up to 24", "1")
    .action((flags: ListFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const fights = await client.fights.list({ cluster, hours: Number(flags.hours) });
        const items = [...fights.hot, ...fights.flips, ...fights.loops];
        print(flags.output, {
          document: fights,
          items,
          names: fights.hot.map(nameOf),
          table: () => fightRows(fights),
          empty: "nobody fights",
        });
      }),
    );
}

function fightRows({ hot, flips, loops }: Fights): string {
  const rows: Cell[][] = [
    ...hot.map((item): Cell[] => ["conflicts", String(item.conflicts), nameOf(item), "-"]),
    ...flips.map((item): Cell[] => {
      const note = `${item.path} goes to and fro with ${item.manager}`;
      return ["flips", String(item.count), nameOf(item), note];
    }),
    ...loops.map(({ key, kind, count, untilMs }): Cell[] => {
      const until = new Date(untilMs).toISOString();
      return ["loop", String(count), key, `${kind}, slowed down until ${until}`];
    }),
  ];
  return columns([["WHAT", "COUNT", "OBJECT", "NOTE"], ...rows]);
}

function nameOf(item: Fights["hot"][number] | Fights["flips"][number]): string {
  return [item.resource, item.namespace, item.name].filter((part) => part !== undefined).join("/");
}
