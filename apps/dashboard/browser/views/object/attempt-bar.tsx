import type { AttemptRecord } from "@konverge/records";
import { formatMs } from "../../parts/format.ts";

/** The parts of an attempt's duration, in chronological order. */
const PARTS = [
  { name: "queue", text: "in the queue" },
  { name: "limiter", text: "for tokens" },
  { name: "lane", text: "for the object lane" },
  { name: "conflict", text: "after conflicts" },
  { name: "run", text: "running" },
] as const;

type Part = (typeof PARTS)[number]["name"];

/** The part of a bar that waits in the queue may fill: they are often much longer than the attempt. */
const QUEUE_SHARE = 0.3;

/** Returns the time in ms that fills a bar: the longest attempt, and room for its wait in the queue. */
export function scaleOf(attempts: readonly AttemptRecord[]): number {
  const longestMs = Math.max(1, ...attempts.map(({ durationMs }) => durationMs));
  const queuedMs = Math.max(0, ...attempts.map(({ waits }) => waits.queueMs));
  return longestMs + Math.min(queuedMs, (longestMs * QUEUE_SHARE) / (1 - QUEUE_SHARE));
}

/** Returns ms by part. Waits within the handler do not count as running. */
export function timesOf({ waits, durationMs }: AttemptRecord): Readonly<Record<Part, number>> {
  const { queueMs, rateLimitMs, laneMs, conflictMs } = waits;
  return {
    queue: queueMs,
    limiter: rateLimitMs,
    lane: laneMs,
    conflict: conflictMs,
    run: Math.max(0, durationMs - rateLimitMs - laneMs - conflictMs),
  };
}

export function AttemptBar({
  record,
  scaleMs,
}: {
  readonly record: AttemptRecord;
  readonly scaleMs: number;
}) {
  const times = timesOf(record);
  const widthOf = (name: Part) =>
    name === "queue" ? Math.min(times.queue, scaleMs * QUEUE_SHARE) : times[name];
  const text = PARTS.filter(({ name }) => times[name] > 0)
    .map((part) => `${formatMs(times[part.name])} ${part.text}`)
    .join(", ");
  return (
    <span class="bar" role="img" aria-label={text === "" ? "less than 1 ms" : text} title={text}>
      {PARTS.map(({ name }) =>
        times[name] === 0 ? null : (
          <span
            key={name}
            class={`part-${name}${widthOf(name) < times[name] ? " cut" : ""}`}
            style={{ width: `${(widthOf(name) / scaleMs) * 100}%` }}
          />
        ),
      )}
    </span>
  );
}

export function Legend({ scaleMs }: { readonly scaleMs: number }) {
  return (
    <ul class="legend" aria-label="Bar colors">
      {PARTS.map(({ name, text }) => (
        <li key={name}>
          <span class={`part-${name}`} />
          {text}
        </li>
      ))}
      <li class="dim">longest {formatMs(scaleMs)}</li>
    </ul>
  );
}
