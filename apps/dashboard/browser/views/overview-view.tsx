import type { Overview, OverviewController } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { usePageState } from "../parts/page-state.ts";
import { apiPath, cluster, viewHref } from "../state/cluster.ts";
import { freshness } from "../state/freshness.ts";
import { href } from "../state/router.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { formatClock, formatCount, formatMs } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { WorkerCount } from "../parts/worker-count.tsx";
import { ProblemList } from "./overview/problem-list.tsx";
import { WorkflowTable } from "./workflow/workflow-table.tsx";

const EVERY_MS = 5_000;

/** A summary, the problems, and a row per controller and workflow. */
export function OverviewView() {
  const { data, trouble } = useQuery<Overview>(apiPath("overview"), EVERY_MS);
  if (data === undefined) {
    return (
      <>
        <h1>Overview</h1>
        <TroubleNote trouble={trouble} />
        <Loading />
      </>
    );
  }
  return (
    <>
      <Summary overview={data} isFailing={trouble !== undefined} />
      <TroubleNote trouble={trouble} />
      <ProblemList problems={data.problems} />
      {data.controllers.length + data.workflows.length === 0 ? (
        <Empty title={`No controllers or workflows on ${cluster.value} yet`}>
          <p>Start a worker to register its controllers and workflows:</p>
          <CliLine line="konverge worker --config konverge.config.ts" />
        </Empty>
      ) : null}
      {data.controllers.length === 0 ? null : (
        <>
          <h2>Controllers</h2>
          <Controllers rows={data.controllers} />
        </>
      )}
      {data.workflows.length === 0 ? null : (
        <>
          <h2>Workflows</h2>
          <WorkflowTable rows={data.workflows} />
        </>
      )}
      <Clusters names={data.clusters} />
      <CliLine line="konverge status" />
    </>
  );
}

function Summary({
  overview,
  isFailing,
}: {
  readonly overview: Overview;
  /** The last request failed. */
  readonly isFailing: boolean;
}) {
  const { problems, summary } = overview;
  const { atMs, level } = freshness.value ?? { level: "fresh" };
  const isUnknown = atMs !== undefined && (level === "stale" || (level === "late" && isFailing));
  const tone = toneOf(overview);
  usePageState({
    title: problems.length === 0 ? "Overview" : `${summary.replace(/\.$/, "")} · Overview`,
    tone: isUnknown ? "idle" : tone,
  });
  if (isUnknown) {
    return (
      <h1 class="verdict unknown">
        <Status tone="idle">{`Unknown: no update since ${formatClock(atMs)}`}</Status>
      </h1>
    );
  }
  return (
    <h1 class={`verdict ${tone}`}>
      <Status tone={tone}>{summary}</Status>
    </h1>
  );
}

function toneOf({ problems, controllers, workflows }: Overview): Tone {
  const levels = new Set(problems.map((problem) => problem.level));
  if (controllers.length + workflows.length === 0) return "idle";
  return levels.has("error") ? "bad" : levels.has("warning") ? "warn" : "good";
}

const COLUMNS: readonly Column<OverviewController>[] = [
  {
    title: "Controller",
    cell: ({ name, kind, group, version }) => (
      <>
        <a class="strong" href={viewHref(`/controllers/${encodeURIComponent(name)}`)} data-row>
          {name}
        </a>
        <div class="dim small">
          {kind} <span class="nowrap">{group === "" ? version : `${group}/${version}`}</span>
        </div>
      </>
    ),
  },
  { title: "Last hour", cell: ({ minutes }) => <Sparkline minutes={minutes} /> },
  { title: "p50", look: "num right", cell: ({ p50Ms }) => shown(p50Ms) },
  { title: "p99", look: "num right", cell: ({ p99Ms }) => shown(p99Ms) },
  {
    title: "Waiting",
    look: "num right",
    cell: ({ name, waiting }) => (
      <a href={viewHref("/objects", { controller: name, phase: "waiting" })}>
        {formatCount(waiting)}
      </a>
    ),
  },
  {
    title: "Oldest",
    look: "num right",
    cell: ({ oldestRequestAgeMs }) => shown(oldestRequestAgeMs),
  },
  {
    title: "Running",
    look: "num right",
    cell: ({ name, active }) => (
      <a href={viewHref("/objects", { controller: name, phase: "running" })}>
        {formatCount(active)}
      </a>
    ),
  },
  { title: "Workers", look: "num right", cell: ({ workers }) => <WorkerCount workers={workers} /> },
];

function Controllers({ rows }: { readonly rows: readonly OverviewController[] }) {
  return (
    <div class="panel">
      <Table columns={COLUMNS} rows={rows} keyOf={({ name }) => name} />
    </div>
  );
}

function shown(ms: number | undefined) {
  return ms === undefined ? <span class="dim">–</span> : formatMs(ms);
}

function Clusters({ names }: { readonly names: readonly string[] }) {
  if (names.length < 2) return null;
  return (
    <p class="chips">
      <span class="dim">Clusters</span>
      {names.map((name) => (
        <a
          key={name}
          class="chip"
          href={href("/", { cluster: name })}
          aria-current={name === cluster.value ? "true" : undefined}
        >
          {name}
        </a>
      ))}
    </p>
  );
}
