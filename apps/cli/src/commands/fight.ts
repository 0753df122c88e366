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
  konverge object history node-pool blue -n demo      # competing writers and fields`;

export function addFightCommand(program: Command): void {
  const fight = program
    .command("fight")
    .description("Show contention between field managers")
    .addHelpText("after", groupHelp(HELP));

  withClient(
    fight.command("list").description("List contended objects, ownership flips and throttled keys"),
  )
    .option("--hours <n>", "Period in hours, up to 24", "1")
    .action((flags: ListFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const fights = await client.fights.list({ cluster, hours: Number(flags.hours) });
        const items = [...fights.hot, ...fights.flips, ...fights.loops];
        print(flags.output, {
          document: fights,
          items,
          names: fights.hot.map(nameOf),
          table: () => fightRows(fights),
          empty: "no contention found",
        });
      }),
    );
}

function fightRows({ hot, flips, loops }: Fights): string {
  const rows: Cell[][] = [
    ...hot.map((item): Cell[] => ["conflicts", String(item.conflicts), nameOf(item), "-"]),
    ...flips.map((item): Cell[] => {
      const note = `${item.path} flips between this controller and ${item.manager}`;
      return ["flips", String(item.count), nameOf(item), note];
    }),
    ...loops.map(({ key, kind, count, untilMs }): Cell[] => {
      const until = new Date(untilMs).toISOString();
      return ["loop", String(count), key, `${kind}, throttled until ${until}`];
    }),
  ];
  return columns([["TYPE", "COUNT", "OBJECT", "NOTE"], ...rows]);
}

function nameOf(item: Fights["hot"][number] | Fights["flips"][number]): string {
  return [item.resource, item.namespace, item.name].filter((part) => part !== undefined).join("/");
}
