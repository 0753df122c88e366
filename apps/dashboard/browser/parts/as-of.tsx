import { ageOf, freshness } from "../state/freshness.ts";
import { formatMs } from "./format.ts";

/** The age of what the page shows: amber if an update is overdue, red if the data is stale. */
export function AsOf() {
  const found = freshness.value;
  if (found === undefined) return <span class="as-of" />;
  const { atMs, level } = found;
  const at = new Date(atMs).toISOString();
  const clock = `${at.slice(11, 19)} UTC`;
  const seconds = Math.floor(ageOf(found) / 1_000);
  const age = seconds < 1 ? "now" : `${formatMs(seconds * 1_000).replace(".0", "")} ago`;
  return (
    <span
      class={level === "fresh" ? "as-of" : `as-of ${level}`}
      role={level === "stale" ? "alert" : undefined}
      title={at}
    >
      {level === "stale" ? `not updated since ${clock}` : `updated ${age}`}
    </span>
  );
}
