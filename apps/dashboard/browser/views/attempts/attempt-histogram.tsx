import type { OverviewController } from "@konverge/contracts";
import { formatCount } from "../../parts/format.ts";
import { setQuery } from "../../state/router.ts";

type Minute = OverviewController["minutes"][number];

const MINUTE_MS = 60_000;
const PARTS = ["ok", "conflict", "failed"] as const;
const TEXTS = { ok: "done", conflict: "conflicts", failed: "failed" } as const;

export interface HistogramProps {
  /** Undefined while it is read. */
  readonly rows: readonly OverviewController[] | undefined;
  /** Start of the last minute, Unix ms. */
  readonly endMs: number;
  /** Only this controller. */
  readonly controller: string | undefined;
}

/** Attempts per minute of the last hour, by outcome. A click on a minute lists its attempts. */
export function AttemptHistogram({ rows, endMs, controller }: HistogramProps) {
  const shown = rows?.filter(({ name }) => controller === undefined || name === controller) ?? [];
  const minutes = totalsOf(shown);
  const most = Math.max(1, ...minutes.map(({ ok, failed, conflict }) => ok + failed + conflict));
  const sum = (part: keyof Minute) => minutes.reduce((total, minute) => total + minute[part], 0);
  const text = PARTS.map((part) => `${formatCount(sum(part))} ${TEXTS[part]}`).join(", ");
  const lastMs = Math.floor(endMs / MINUTE_MS) * MINUTE_MS;
  const startOf = (index: number) => lastMs - (minutes.length - 1 - index) * MINUTE_MS;
  return (
    <figure class="histogram">
      <figcaption class="dim small">
        {rows === undefined
          ? "Last hour"
          : `Last hour: ${text}; at most ${formatCount(most)} per minute`}
      </figcaption>
      <div class="histogram-bars" role="img" aria-label={`Attempts per minute: ${text}`}>
        {minutes.map((minute, index) => (
          <span
            key={startOf(index)}
            class="histogram-minute"
            title={`${new Date(startOf(index)).toISOString().slice(11, 16)} UTC: ${PARTS.map((part) => `${minute[part]} ${TEXTS[part]}`).join(", ")}`}
            onClick={() => choose(startOf(index))}
          >
            {PARTS.map((part) =>
              minute[part] === 0 ? null : (
                <span
                  key={part}
                  class={part}
                  style={{ height: `${Math.max(4, (minute[part] / most) * 100)}%` }}
                />
              ),
            )}
          </span>
        ))}
      </div>
    </figure>
  );
}

function choose(fromMs: number): void {
  setQuery({
    since: new Date(fromMs).toISOString(),
    until: new Date(fromMs + MINUTE_MS).toISOString(),
    range: undefined,
    cursor: undefined,
  });
}

function totalsOf(rows: readonly OverviewController[]): Minute[] {
  const length = Math.max(60, ...rows.map(({ minutes }) => minutes.length));
  return Array.from({ length }, (_, index) => {
    const each = rows.map(({ minutes }) => minutes[index]);
    const sum = (part: keyof Minute) => each.reduce((total, one) => total + (one?.[part] ?? 0), 0);
    return { ok: sum("ok"), failed: sum("failed"), conflict: sum("conflict") };
  });
}
