import type { ActivityMinute } from "@konverge/contracts";
import { formatClock, plural } from "../../parts/format.ts";

interface MinuteEvent {
  readonly at: string;
  readonly kind: "deployment" | "pause" | "outage" | "isolation";
  readonly text: string;
}

const SHOWN = 8;

/** Lists the shades and marks of the charts, newest first. */
export function MinuteEvents({ items }: { readonly items: readonly ActivityMinute[] }) {
  const events = eventsOf(items).toReversed();
  if (events.length === 0) return null;
  return (
    <ul class="events" aria-label="Deployments, pauses and outages">
      {events.slice(0, SHOWN).map(({ at, kind, text }) => (
        <li key={`${at}${kind}`}>
          <span class={`swatch ${kind}`} aria-hidden="true" />
          <time dateTime={at}>{formatClock(Date.parse(at))}</time> <span class="dim">{text}</span>
        </li>
      ))}
      {events.length > SHOWN ? <li class="dim">and {events.length - SHOWN} earlier</li> : null}
    </ul>
  );
}

function eventsOf(items: readonly ActivityMinute[]): MinuteEvent[] {
  const deployments = items.flatMap(({ at, version }) =>
    version === undefined
      ? []
      : [{ at, kind: "deployment" as const, text: `versions running: ${version}` }],
  );
  return [
    ...deployments,
    ...periodsOf(items, "pause", "paused", ({ isPaused }) => isPaused === true),
    ...periodsOf(items, "outage", "calls stopped by the breaker", ({ breaker }) =>
      ["open", "halfOpen"].includes(breaker ?? ""),
    ),
    ...periodsOf(items, "isolation", "isolated", ({ breaker }) => breaker === "isolated"),
  ].toSorted((one, other) => (one.at < other.at ? -1 : 1));
}

function periodsOf(
  items: readonly ActivityMinute[],
  kind: MinuteEvent["kind"],
  what: string,
  isIn: (minute: ActivityMinute) => boolean,
): MinuteEvent[] {
  const events: MinuteEvent[] = [];
  let length = 0;
  for (const [index, minute] of items.entries()) {
    if (isIn(minute)) length += 1;
    const next = items[index + 1];
    if (length === 0 || (next !== undefined && isIn(next))) continue;
    const at = items[index - length + 1]?.at ?? minute.at;
    events.push({ at, kind, text: `${what} for ${plural(length, "minute")}` });
    length = 0;
  }
  return events;
}
