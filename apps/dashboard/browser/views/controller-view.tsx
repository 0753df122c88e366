import type { Rollups } from "@konverge/contracts";
import { endedWell } from "@konverge/core";
import { useMemo } from "preact/hooks";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { path, query, setQuery } from "../state/router.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { formatCount, formatMs } from "../parts/format.ts";
import { Loading, TroubleNote } from "../parts/notice.tsx";
import { isFailure } from "../parts/status.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Clock } from "../parts/time.tsx";
import { Chart } from "./controller/chart.tsx";
import type { Line } from "./controller/plot.ts";

const EVERY_MS = 30_000;
const MINUTE_MS = 60_000;
const SPANS = [
  { minutes: "60", text: "1 h" },
  { minutes: "360", text: "6 h" },
  { minutes: "1440", text: "24 h" },
] as const;
const MOST_ROWS = 60;

/** The activity of a controller by minute. */
export function ControllerView({ name }: { readonly name: string }) {
  const minutes = query.value.get("minutes") ?? "60";
  const { data, trouble } = useQuery<Rollups>(
    apiPath("rollups", { controller: name, minutes }),
    EVERY_MS,
  );
  return (
    <>
      <div class="title-row">
        <div>
          <p class="crumbs">controller</p>
          <h1>{name}</h1>
        </div>
        <div class="buttons" role="group" aria-label="Time range">
          {SPANS.map((span) => (
            <button
              type="button"
              class="chip"
              key={span.minutes}
              aria-pressed={span.minutes === minutes}
              onClick={() => setQuery({ minutes: span.minutes })}
            >
              {span.text}
            </button>
          ))}
        </div>
      </div>
      <Tabs
        label={`Pages of ${name}`}
        tabs={[
          { title: "Activity", href: viewHref(path.value), isCurrent: true },
          { title: "Attempts", href: viewHref("/attempts", { controller: name }) },
          { title: "Objects", href: viewHref("/objects", { controller: name }) },
          { title: "Dead letters", href: viewHref("/dead-letters", { controller: name }) },
        ]}
      />
      <TroubleNote trouble={trouble} />
      {data === undefined ? (
        trouble === undefined && <Loading />
      ) : (
        <Charts items={data.items} minutes={Number(minutes)} />
      )}
      <CliLine line={`konverge attempt list --controller ${quote(name)}`} />
    </>
  );
}

type Minute = Rollups["items"][number];

function Charts({
  items,
  minutes,
}: {
  readonly items: readonly Minute[];
  readonly minutes: number;
}) {
  const drawn = useMemo(() => seriesOf(items, minutes), [items, minutes]);
  const sum = (of: (minute: Minute) => number) =>
    items.reduce((total, each) => total + of(each), 0);
  const attempts = sum((minute) => minute.attempts);
  const failed = sum((minute) => count(minute, isFailure));
  const conflicts = sum((minute) => minute.conflicts);
  const perAttempt =
    attempts === 0
      ? "no attempts"
      : `${formatMs(sum(({ ms }) => ms) / attempts)} on average, ${(sum(({ calls }) => calls) / attempts).toFixed(1)} API calls per attempt`;
  return (
    <>
      <Chart
        title="Attempts per minute"
        summary={`${formatCount(attempts)} in total, ${formatCount(failed)} failed, ${formatCount(conflicts)} conflicts`}
        times={drawn.times}
        lines={drawn.outcomes}
        format={formatCount}
      />
      <Chart
        title="Attempt duration"
        summary={perAttempt}
        times={drawn.times}
        lines={drawn.time}
        format={formatMs}
      />
      <details class="as-table">
        <summary>Show as table</summary>
        <MinuteTable items={items} />
      </details>
    </>
  );
}

/** Returns the lines over all complete minutes. Minutes missing from the response had no attempts. */
function seriesOf(items: readonly Minute[], minutes: number) {
  const known = new Map(items.map((minute) => [Date.parse(minute.at), minute]));
  const last = (Math.floor(Date.now() / MINUTE_MS) - 1) * MINUTE_MS;
  const times = Array.from(
    { length: minutes },
    (_, index) => last - (minutes - 1 - index) * MINUTE_MS,
  );
  const line = (
    label: string,
    color: Line["color"],
    of: (minute: Minute) => number | null,
    empty: 0 | null = 0,
  ): Line => ({
    label,
    color,
    values: times.map((time) => {
      const minute = known.get(time);
      return minute === undefined ? empty : of(minute);
    }),
  });
  return {
    times: times.map((time) => time / 1_000),
    outcomes: [
      line("done", "--good-fill", (minute) => count(minute, endedWell)),
      line("conflicts", "--race-fill", ({ conflicts }) => conflicts),
      line("failed", "--bad-fill", (minute) => count(minute, isFailure)),
    ],
    time: [
      line(
        "mean",
        "--run-fill",
        ({ ms, attempts }) => (attempts === 0 ? null : ms / attempts),
        null,
      ),
    ],
  };
}

function count({ outcomes }: Minute, includes: (outcome: string) => boolean): number {
  return Object.entries(outcomes).reduce(
    (sum, [outcome, number]) => (includes(outcome) ? sum + number : sum),
    0,
  );
}

const COLUMNS: readonly Column<Minute>[] = [
  { title: "Minute", cell: ({ at }) => <Clock at={at} /> },
  countColumn("Attempts", ({ attempts }) => attempts),
  countColumn("Done", (minute) => count(minute, endedWell)),
  countColumn("Failed", (minute) => count(minute, isFailure)),
  countColumn("Conflicts", ({ conflicts }) => conflicts),
  countColumn("Writes", ({ writes }) => writes),
  countColumn("API calls", ({ calls }) => calls),
];

function countColumn(title: string, of: (minute: Minute) => number): Column<Minute> {
  return { title, look: "num right", cell: (minute) => formatCount(of(minute)) };
}

function MinuteTable({ items }: { readonly items: readonly Minute[] }) {
  return (
    <div class="panel scroll" tabIndex={0} role="region" aria-label="Minutes, newest first">
      <Table look="" columns={COLUMNS} rows={items.slice(0, MOST_ROWS)} keyOf={({ at }) => at} />
    </div>
  );
}
