import type { OverviewController } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { viewHref } from "../../state/cluster.ts";
import { formatCount, formatMs } from "../../parts/format.ts";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { WorkerCount } from "../../parts/worker-count.tsx";

const MINUTES_PER_HOUR = 60;
/** Dead letters are counted up to this number. */
const MOST_DEAD = 100;
const FAILING_SHARE = 0.1;

const COLUMNS: readonly Column<OverviewController>[] = [
  {
    title: "Controller",
    cell: ({ name, kind, group, version }) => (
      <>
        <a class="strong" href={viewHref(`/controllers/${encodeURIComponent(name)}`)} data-row>
          {name}
        </a>
        <div class="dim small nowrap secondary">
          {kind} {group === "" ? version : `${group}/${version}`}
        </div>
      </>
    ),
  },
  { title: "Last hour", cell: ({ minutes }) => <Sparkline minutes={minutes} /> },
  {
    title: "Per minute",
    look: "num right",
    cell: ({ minutes }) => {
      const perMinute = attemptsOf(minutes) / MINUTES_PER_HOUR;
      return (
        <Quiet isQuiet={perMinute === 0}>
          {perMinute < 10 ? perMinute.toFixed(1) : formatCount(Math.round(perMinute))}
        </Quiet>
      );
    },
  },
  {
    title: "Failed",
    look: "num right nowrap",
    cell: ({ name, minutes }) => {
      const failed = minutes.reduce((sum, minute) => sum + minute.failed, 0);
      if (failed === 0) return <Quiet isQuiet>0%</Quiet>;
      const share = failed / attemptsOf(minutes);
      const text = share < 0.01 ? "<1%" : `${Math.round(share * 100)}%`;
      return (
        <a href={viewHref("/attempts", { controller: name, outcome: "retry" })}>
          {share >= FAILING_SHARE ? <Status tone="bad">{text}</Status> : text}
        </a>
      );
    },
  },
  { title: "p50", look: "num right nowrap", cell: ({ p50Ms }) => shown(p50Ms) },
  { title: "p99", look: "num right nowrap", cell: ({ p99Ms }) => shown(p99Ms) },
  {
    title: "Waiting",
    look: "num right",
    cell: ({ name, waiting }) => (
      <a href={viewHref("/objects", { controller: name, phase: "waiting" })}>
        <Quiet isQuiet={waiting === 0}>{formatCount(waiting)}</Quiet>
      </a>
    ),
  },
  {
    title: "Oldest",
    look: "num right nowrap",
    cell: ({ oldestRequestAgeMs }) => shown(oldestRequestAgeMs),
  },
  {
    title: "Slots used",
    look: "num right nowrap",
    cell: ({ name, active, slots }) => (
      <a href={viewHref("/objects", { controller: name, phase: "running" })}>
        <Quiet isQuiet={active === 0}>
          {formatCount(active)}
          {slots === undefined ? "" : ` of ${formatCount(slots)}`}
        </Quiet>
      </a>
    ),
  },
  {
    title: "Dead letters",
    look: "num right nowrap",
    cell: ({ name, deadLetters }) =>
      deadLetters === 0 ? (
        <Quiet isQuiet>0</Quiet>
      ) : (
        <a href={viewHref("/dead-letters", { controller: name })}>
          <Status tone="bad">
            {deadLetters >= MOST_DEAD ? `${MOST_DEAD} or more` : String(deadLetters)}
          </Status>
        </a>
      ),
  },
  { title: "Workers", look: "num right", cell: ({ workers }) => <WorkerCount workers={workers} /> },
];

/** A row per controller. */
export function ControllerTable({ rows }: { readonly rows: readonly OverviewController[] }) {
  return (
    <div class="panel">
      <Table columns={COLUMNS} rows={rows} keyOf={({ name }) => name} />
    </div>
  );
}

function attemptsOf(minutes: OverviewController["minutes"]): number {
  return minutes.reduce((sum, { ok, failed, conflict }) => sum + ok + failed + conflict, 0);
}

/** A value that needs no attention is dimmed. */
function Quiet({
  isQuiet,
  children,
}: {
  readonly isQuiet: boolean;
  readonly children: ComponentChildren;
}) {
  return <span class={isQuiet ? "zero" : undefined}>{children}</span>;
}

function shown(ms: number | undefined) {
  return ms === undefined ? <span class="zero">–</span> : formatMs(ms);
}
