import type { ActivityMinute } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { formatCount, formatMs, formatRate } from "../../parts/format.ts";
import { Table, type Column } from "../../parts/table.tsx";
import { Clock } from "../../parts/time.tsx";

const MOST_ROWS = 60;

/** All values but the time are optional, so that the tables of all pages share the columns. */
type Minute = Pick<ActivityMinute, "at"> & Partial<ActivityMinute>;

const MINUTE: Column<Minute> = { title: "Minute", cell: ({ at }) => <Clock at={at} /> };

const countColumn = (title: string, of: (minute: Minute) => number | undefined): Column<Minute> =>
  valueColumn(title, of, formatCount);

function valueColumn(
  title: string,
  of: (minute: Minute) => number | undefined,
  format: (value: number) => string,
): Column<Minute> {
  return {
    title,
    look: "num right",
    cell: (minute) => {
      const value = of(minute);
      return value === undefined ? <span class="dim">–</span> : format(value);
    },
  };
}

const OUTCOMES: readonly Column<Minute>[] = [
  countColumn("Attempts", ({ ok = 0, failed = 0, conflict = 0 }) => ok + failed + conflict),
  countColumn("Done", ({ ok }) => ok),
  countColumn("Failed", ({ failed }) => failed),
  countColumn("Conflicts", ({ conflict }) => conflict),
];
const QUEUE: readonly Column<Minute>[] = [
  countColumn("Waiting", ({ waiting }) => waiting),
  valueColumn("Oldest", ({ oldestMs }) => oldestMs, formatMs),
];
const CALLS: readonly Column<Minute>[] = [
  countColumn("API calls", ({ calls }) => calls),
  countColumn("Deferred", ({ deferred }) => deferred),
  valueColumn("Allowed per s", ({ allowed }) => allowed, formatRate),
  { title: "Breaker", cell: ({ breaker }) => breaker ?? <span class="dim">–</span> },
];
const DURATIONS: readonly Column<Minute>[] = [
  valueColumn("p50", ({ p50Ms }) => p50Ms, formatMs),
  valueColumn("p95", ({ p95Ms }) => p95Ms, formatMs),
  valueColumn("p99", ({ p99Ms }) => p99Ms, formatMs),
];

const COLUMNS = {
  cluster: [MINUTE, ...OUTCOMES, ...QUEUE, ...CALLS],
  controller: [MINUTE, ...OUTCOMES, ...DURATIONS, ...QUEUE],
  guard: [MINUTE, ...CALLS],
} as const;

/** The data of the charts as a table, newest minute first. */
export function MinuteTable({
  items,
  of,
}: {
  readonly items: readonly Minute[];
  readonly of: keyof typeof COLUMNS;
}) {
  const [isOpen, setOpen] = useState(false);
  const rows = isOpen ? items.toReversed().slice(0, MOST_ROWS) : [];
  const more = items.length - MOST_ROWS;
  return (
    <details class="as-table" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Show as table</summary>
      {isOpen ? (
        <div class="panel scroll" tabIndex={0} role="region" aria-label="Minutes, newest first">
          <Table look="" columns={COLUMNS[of]} rows={rows} keyOf={({ at }) => at} />
          {more <= 0 ? null : (
            <p class="more dim small">
              and {formatCount(more)} earlier minutes; see GET /v1/activity
            </p>
          )}
        </div>
      ) : null}
    </details>
  );
}
