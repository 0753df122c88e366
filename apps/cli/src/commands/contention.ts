import type { ContentionReport } from "@konverge/contracts";
import type { Command } from "commander";
import { columns, type Cell } from "../text/columns.ts";
import { print } from "../text/output.ts";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";

interface ListFlags extends ClientFlags {
  readonly hours: string;
}

const HELP = `
  konverge contention list --hours 24
  konverge object history node-pool blue -n demo      # competing writers and fields`;

export function addContentionCommand(program: Command): void {
  const contention = program
    .command("contention")
    .description("Show contention between field managers")
    .addHelpText("after", groupHelp(HELP));

  withClient(
    contention
      .command("list")
      .description("List contended objects, ownership flips and throttled keys"),
  )
    .option("--hours <n>", "Period in hours, up to 24", "1")
    .action((flags: ListFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const report = await client.contention.list({ cluster, hours: Number(flags.hours) });
        const items = [...report.contendedObjects, ...report.ownershipFlips, ...report.loops];
        print(flags.output, {
          document: report,
          items,
          names: report.contendedObjects.map(nameOf),
          table: () => contentionRows(report),
          empty: "no contention found",
        });
      }),
    );
}

function contentionRows({ contendedObjects, ownershipFlips, loops }: ContentionReport): string {
  const rows: Cell[][] = [
    ...contendedObjects.map((item): Cell[] => [
      "conflicts",
      String(item.conflicts),
      nameOf(item),
      "-",
    ]),
    ...ownershipFlips.map((item): Cell[] => {
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

function nameOf(
  item: ContentionReport["contendedObjects"][number] | ContentionReport["ownershipFlips"][number],
): string {
  return [item.resource, item.namespace, item.name].filter((part) => part !== undefined).join("/");
}
