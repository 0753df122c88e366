import { ageOf, freshness } from "../state/freshness.ts";
import { formatClock, formatInstant, formatMs } from "./format.ts";

/** The age of what the page shows: amber if an update is overdue, red if the data is stale. */
export function AsOf() {
  const found = freshness.value;
  if (found === undefined) return <span class="as-of" />;
  const { atMs, level } = found;
  const seconds = Math.floor(ageOf(found) / 1_000);
  const age = seconds < 1 ? "now" : `${formatMs(seconds * 1_000).replace(".0", "")} ago`;
  return (
    <span
      class={level === "fresh" ? "as-of" : `as-of ${level}`}
      role={level === "stale" ? "alert" : undefined}
      title={formatInstant(new Date(atMs).toISOString())}
    >
      {level === "stale" ? `not updated since ${formatClock(atMs)}` : `updated ${age}`}
    </span>
  );
}
