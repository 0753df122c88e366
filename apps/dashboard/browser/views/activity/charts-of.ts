import type { ActivityMinute } from "@konverge/contracts";
import type { ChartData, Mark, Shade } from "../../parts/chart-data.ts";
import { formatCount, formatMs, formatRate } from "../../parts/format.ts";

const MINUTE_S = 60;
const HEIGHT = 132;

type Minutes = readonly ActivityMinute[];
/** The part of a minute that concerns the guard. */
export type CallMinute = Pick<
  ActivityMinute,
  "at" | "calls" | "deferred" | "allowed" | "limit" | "waitingCalls" | "breaker"
>;

/** The shortest period of a chart. */
const FEWEST_MINUTES = 15;

/**
 * Returns the complete minutes: the running one would look like a drop. Omits those before the first data, so that the chart
 * of a new installation is not empty.
 */
export function completeMinutes<Minute extends CallMinute>(
  items: readonly Minute[],
): readonly Minute[] {
  const complete = items.slice(0, -1);
  const first = complete.findIndex(hasData);
  const from = first === -1 ? 0 : Math.min(first, complete.length - FEWEST_MINUTES);
  return complete.slice(Math.max(0, from));
}

function hasData({
  allowed,
  waiting,
  ok = 0,
  failed = 0,
  conflict = 0,
}: CallMinute & Partial<ActivityMinute>): boolean {
  return allowed !== undefined || waiting !== undefined || ok + failed + conflict > 0;
}

const timesOf = (items: readonly CallMinute[]) => items.map(({ at }) => Date.parse(at) / 1_000);
const valuesOf = <Minute>(items: readonly Minute[], of: (minute: Minute) => number | undefined) =>
  items.map((minute) => of(minute) ?? null);

/** Attempts per minute, stacked by outcome. */
export function outcomesChart(items: Minutes, height: number = HEIGHT): ChartData {
  return {
    times: timesOf(items),
    height,
    format: formatCount,
    series: [
      { label: "done", color: "--good-fill", kind: "bar", values: valuesOf(items, ({ ok }) => ok) },
      {
        label: "conflict",
        color: "--race-fill",
        kind: "bar",
        values: valuesOf(items, ({ conflict }) => conflict),
      },
      {
        label: "failed",
        color: "--bad-fill",
        kind: "bar",
        values: valuesOf(items, ({ failed }) => failed),
      },
    ],
  };
}

/** Waiting requests and the age of the oldest. */
export function backlogChart(items: Minutes, height: number = HEIGHT): ChartData {
  return {
    times: timesOf(items),
    height,
    format: formatCount,
    formatRight: formatMs,
    series: [
      {
        label: "waiting",
        color: "--run-fill",
        kind: "area",
        values: valuesOf(items, ({ waiting }) => waiting),
      },
      {
        label: "oldest",
        color: "--limiter-fill",
        scale: "right",
        values: valuesOf(items, ({ oldestMs }) => oldestMs),
      },
    ],
  };
}

/** API calls per second of the allowed rate, with the states of the breaker. */
export function callsChart(items: readonly CallMinute[], height: number = HEIGHT): ChartData {
  return {
    times: timesOf(items),
    height,
    format: formatRate,
    shades: breakerShades(items),
    series: [
      {
        label: "used",
        color: "--run-fill",
        kind: "area",
        values: valuesOf(items, ({ calls }) =>
          calls === undefined ? undefined : calls / MINUTE_S,
        ),
      },
      {
        label: "deferred",
        color: "--bad-fill",
        values: valuesOf(items, ({ deferred }) =>
          deferred === undefined ? undefined : deferred / MINUTE_S,
        ),
      },
      {
        label: "allowed",
        color: "--dim",
        isDashed: true,
        values: valuesOf(items, ({ allowed }) => allowed),
      },
    ],
  };
}

/** Calls that waited for a token. */
export function waitingCallsChart(
  items: readonly CallMinute[],
  height: number = HEIGHT,
): ChartData {
  return {
    times: timesOf(items),
    height,
    format: formatCount,
    shades: breakerShades(items),
    series: [
      {
        label: "waiting",
        color: "--limiter-fill",
        kind: "area",
        values: valuesOf(items, ({ waitingCalls }) => waitingCalls),
      },
    ],
  };
}

/** Describes the waiting calls of some minutes. */
export function waitingCallsText(items: readonly CallMinute[]): string {
  if (items.every(({ waitingCalls }) => waitingCalls === undefined)) return "not measured yet";
  const most = Math.max(0, ...items.map(({ waitingCalls = 0 }) => waitingCalls));
  return most === 0 ? "no calls waited" : `at most ${formatCount(most)}`;
}

/** Percentiles of the durations. */
export function durationChart(items: Minutes, height: number): ChartData {
  return {
    times: timesOf(items),
    height,
    format: formatMs,
    series: [
      {
        label: "p99",
        color: "--limiter-fill",
        kind: "area",
        values: valuesOf(items, ({ p99Ms }) => p99Ms),
      },
      {
        label: "p95",
        color: "--run-fill",
        kind: "area",
        values: valuesOf(items, ({ p95Ms }) => p95Ms),
      },
      { label: "p50", color: "--good-fill", values: valuesOf(items, ({ p50Ms }) => p50Ms) },
    ],
  };
}

const BREAKER_COLORS = {
  open: "--bad-fill",
  halfOpen: "--bad-fill",
  isolated: "--race-fill",
} as const;

/** The minutes in which the breaker was not closed. */
function breakerShades(items: readonly CallMinute[]): Shade[] {
  return shadesOf(items, ({ breaker }) =>
    breaker === undefined || breaker === "closed" ? undefined : BREAKER_COLORS[breaker],
  );
}

/** The minutes in which the controller was paused. */
function pauseShades(items: Minutes): Shade[] {
  return shadesOf(items, ({ isPaused }) => (isPaused === true ? "--limiter-fill" : undefined));
}

function shadesOf<Minute extends { readonly at: string }>(
  items: readonly Minute[],
  colorOf: (minute: Minute) => Shade["color"] | undefined,
): Shade[] {
  const shades: Shade[] = [];
  for (const minute of items) {
    const color = colorOf(minute);
    if (color === undefined) continue;
    const fromS = Date.parse(minute.at) / 1_000 - MINUTE_S / 2;
    const last = shades.at(-1);
    if (last?.toS === fromS && last.color === color) {
      shades[shades.length - 1] = { ...last, toS: fromS + MINUTE_S };
    } else shades.push({ fromS, toS: fromS + MINUTE_S, color });
  }
  return shades;
}

/** The minutes in which the running versions changed. */
function deploymentMarks(items: Minutes): Mark[] {
  return items.flatMap(({ at, version }) =>
    version === undefined ? [] : [{ atS: Date.parse(at) / 1_000, color: "--accent" as const }],
  );
}

/** Shades and marks of a controller: outages of its API server, pauses and deployments. */
export function withEvents(chart: ChartData, items: Minutes): ChartData {
  return {
    ...chart,
    shades: [...breakerShades(items), ...pauseShades(items)],
    marks: deploymentMarks(items),
  };
}

/** Adds up a value of all minutes. */
function sumOf(items: Minutes, of: (minute: ActivityMinute) => number | undefined): number {
  return items.reduce((sum, minute) => sum + (of(minute) ?? 0), 0);
}

/** The highest value of all minutes. */
function mostOf(items: Minutes, of: (minute: ActivityMinute) => number | undefined): number {
  return items.reduce((most, minute) => Math.max(most, of(minute) ?? 0), 0);
}

/** Describes the attempts of some minutes. */
export function outcomesText(items: Minutes): string {
  const [failed, conflicts] = [
    sumOf(items, (minute) => minute.failed),
    sumOf(items, (minute) => minute.conflict),
  ];
  const all = sumOf(items, ({ ok }) => ok) + failed + conflicts;
  return `${formatCount(all)} in total, ${formatCount(failed)} failed, ${formatCount(conflicts)} conflicts`;
}

/** Describes the durations of some minutes by their highest percentiles. */
export function durationText(items: Minutes): string {
  const [p50, p99] = [mostOf(items, ({ p50Ms }) => p50Ms), mostOf(items, ({ p99Ms }) => p99Ms)];
  return p99 === 0 ? "no attempts" : `p50 up to ${formatMs(p50)}, p99 up to ${formatMs(p99)}`;
}

/** Describes the queue of some minutes. */
export function backlogText(items: Minutes): string {
  if (items.every(({ waiting }) => waiting === undefined)) return "not measured yet";
  const most = mostOf(items, ({ waiting }) => waiting);
  return most === 0
    ? "no requests waited"
    : `at most ${formatCount(most)}, oldest ${formatMs(mostOf(items, ({ oldestMs }) => oldestMs))}`;
}

/** Describes the calls of some minutes. */
export function callsText(items: readonly CallMinute[]): string {
  const last = items.findLast(({ allowed }) => allowed !== undefined);
  if (last?.allowed === undefined) return "not measured yet";
  const outages = items.filter(({ breaker = "closed" }) => breaker !== "closed").length;
  const used = `${formatRate((last.calls ?? 0) / MINUTE_S)} of ${formatRate(last.allowed)} per second`;
  return outages === 0 ? used : `${used}, stopped in ${formatCount(outages)} min`;
}
