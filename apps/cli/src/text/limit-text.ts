import type { LimitView } from "@konverge/contracts";
import { columns } from "./columns.ts";
import { plain } from "./plain-text.ts";

const HEAD = ["LIMIT", "RATE", "BURST", "SLOTS", "HELD", "WAITING", "PERMITS", "DEFERRALS"];

/** Formats limits, a line each, and their keys with waiters below them. */
export function limitRows(limits: readonly LimitView[]): string {
  return columns([
    HEAD,
    ...limits.flatMap(({ name, options, held, waiting, permits, deferrals, keys }) => [
      [
        name,
        options.rate === undefined ? "-" : `${options.rate}/${period(options.perMs ?? 1_000)}`,
        String(options.burst ?? "-"),
        String(options.concurrency ?? "-"),
        String(held),
        String(waiting),
        String(permits),
        String(deferrals),
      ],
      ...keys
        .filter((each) => each.held + each.waiting > 0)
        .map((each) => [
          `  ${plain(each.key)}`,
          "",
          "",
          "",
          String(each.held),
          String(each.waiting),
          "",
          "",
        ]),
    ]),
  ]);
}

/** Formats an interval in its largest whole unit; one unit without its number. */
function period(ms: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const;
  const found = units.find(([, unitMs]) => ms % unitMs === 0);
  if (found === undefined) return `${ms}ms`;
  const count = ms / found[1];
  return count === 1 ? found[0] : `${count}${found[0]}`;
}
