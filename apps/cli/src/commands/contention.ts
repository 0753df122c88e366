import type { ContentionReport } from "@konverge/contracts";
import type { Command } from "commander";
import { age, span } from "../text/age.ts";
import { columns, type Cell } from "../text/columns.ts";
import { groupHelp, withClient } from "../ask/run-with-client.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

interface ListFlags extends WatchFlags {
  readonly hours: string;
}

const HELP = `
  konverge contention list --hours 24
  konverge object history node-pool blue -n demo      # competing writers and fields`;

export function addContentionCommand(program: Command): void {
  const contention = program
    .command("contention")
    .description("Show contention between field managers")
    .addHelpText("afterAll", groupHelp(HELP));

  withWatch(
    withClient(
      contention
        .command("list")
        .description("List contended objects by wasted writes, and reconcile loops"),
    ),
  )
    .option("--hours <n>", "Period in hours, up to 24", "1")
    .action((flags: ListFlags) =>
      runWatched(flags, async ({ client, cluster }) => {
        const report = await client.contention.list({ cluster, hours: Number(flags.hours) });
        const items = [...report.episodes, ...report.loops];
        return {
          document: report,
          items,
          names: report.episodes.map(nameOf),
          table: () => contentionRows(report),
          empty: "no contention found",
        };
      }),
    );
}

function contentionRows({ episodes, moreEpisodes, loops }: ContentionReport): string {
  const rows = episodes.map((item): Cell[] => [
    String(item.perMinute),
    String(item.wastedWrites),
    `${item.controller} ${nameOf(item)}`,
    item.managers.slice(0, 2).join(", ") || "-",
    item.fields.slice(0, 2).join(", ") || "-",
    `${age(item.since)} ago`,
    item.suggestedFix,
  ]);
  const head = ["PER MIN", "LAST HOUR", "OBJECT", "WITH", "FIELD", "SINCE", "SUGGESTED FIX"];
  const throttled = loops.map(({ key, kind, count, protection, untilMs }): Cell[] => [
    key,
    kind,
    String(count),
    loopText(protection, untilMs),
  ]);
  return [
    ...(rows.length === 0 ? [] : [columns([head, ...rows])]),
    ...(moreEpisodes === 0 ? [] : [`and ${moreEpisodes} more`]),
    ...(throttled.length === 0
      ? []
      : [columns([["LOOP", "KIND", "COUNT", "STARTS"], ...throttled])]),
  ].join("\n");
}

function loopText(protection: "throttle" | "report", untilMs: number): string {
  if (protection === "report") return "not throttled";
  const leftMs = untilMs - Date.now();
  return leftMs > 0 ? `throttled, next start in ${span(leftMs)}` : "throttled, next start is due";
}

function nameOf(item: ContentionReport["episodes"][number]): string {
  return [item.resource, item.namespace, item.name].filter((part) => part !== undefined).join("/");
}
