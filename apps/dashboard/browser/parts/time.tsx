import { signal, type Signal } from "@preact/signals";
import { wallTime, zoneName } from "../state/zone.ts";
import { formatInstant, formatMs } from "./format.ts";

/** The current time, updated every five seconds while the page is visible. */
export const now: Signal<number> = signal(Date.now());
window.setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 5_000);

/** A relative time, with the instant on hover. */
export function Time({ at }: { readonly at: string }) {
  const ms = now.value - Date.parse(at);
  const text =
    Math.abs(ms) < 2_000 ? "now" : ms > 0 ? `${formatMs(ms)} ago` : `in ${formatMs(-ms)}`;
  return (
    <time dateTime={at} title={formatInstant(at)}>
      {text}
    </time>
  );
}

/** The next start of throttled attempts. A time in the past is due, not future. */
export function NextStart({ atMs }: { readonly atMs: number }) {
  if (atMs <= now.value) return <span class="dim">throttled, next start is due</span>;
  return (
    <span class="dim">
      throttled, next start <Time at={new Date(atMs).toISOString()} />
    </span>
  );
}

/** A time of day in milliseconds, with the instant on hover. */
export function Clock({ at }: { readonly at: string }) {
  const atMs = Date.parse(at);
  return (
    <time class="num nowrap" dateTime={at} title={formatInstant(at)}>
      {wallTime(atMs).slice(11, 19)}
      <span class="dim">
        {wallTime(atMs).slice(19, 23)} {zoneName(atMs)}
      </span>
    </time>
  );
}
