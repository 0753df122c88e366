import type { Overview } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { usePageState } from "../parts/page-state.ts";
import { apiPath, cluster } from "../state/cluster.ts";
import { freshness } from "../state/freshness.ts";
import { href } from "../state/router.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { formatClock } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { ActivityCharts } from "./overview/activity-charts.tsx";
import { ControllerTable } from "./overview/controller-table.tsx";
import { ProblemList, RootProblems } from "./overview/problem-list.tsx";
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
      <div class="title-row">
        <Summary overview={data} isFailing={trouble !== undefined} />
        <Clusters names={data.clusters} />
      </div>
      <TroubleNote trouble={trouble} />
      <RootProblems problems={data.problems} />
      {data.controllers.length + data.workflows.length === 0 ? (
        <Empty title={`No controllers or workflows on ${cluster.value} yet`}>
          <p>Start a worker to register its controllers and workflows:</p>
          <CliLine line="konverge worker --config konverge.config.ts" />
        </Empty>
      ) : null}
      <div class="attention">
        {data.controllers.length === 0 ? null : <ActivityCharts activity={data.activity} />}
        <ProblemList problems={data.problems} />
      </div>
      {data.controllers.length === 0 ? null : (
        <>
          <h2>Controllers</h2>
          <ControllerTable rows={data.controllers} />
        </>
      )}
      {data.workflows.length === 0 ? null : (
        <>
          <h2>Workflows</h2>
          <WorkflowTable rows={data.workflows} />
        </>
      )}
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
