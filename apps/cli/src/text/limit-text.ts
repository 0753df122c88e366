import type { LimitView } from "@konverge/contracts";
import { wholeSpan } from "./age.ts";
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

/** Formats an interval, without the number for one unit. */
function period(ms: number): string {
  return wholeSpan(ms).replace(/^1(?=\D)/, "");
}
