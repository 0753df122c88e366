import type { Overview, OverviewController, OverviewProblem } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, cluster, viewHref } from "../state/cluster.ts";
import { href, objectHref, runHref } from "../state/router.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { formatCount, formatMs } from "../parts/format.ts";
import { Icon } from "../parts/icon.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { WorkerCount } from "../parts/worker-count.tsx";
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
      <Summary overview={data} />
      <TroubleNote trouble={trouble} />
      {data.problems.length === 0 ? null : (
        <ul class="problems" aria-label="Problems">
          {data.problems.map((problem) => (
            <li key={`${problem.code}${problem.message}`}>
              <a href={targetOf(problem)} data-row>
                <Status tone={TONES[problem.level]}>{problem.message}</Status>
                <Icon name="right" />
              </a>
            </li>
          ))}
        </ul>
      )}
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
      <CliLine
        line={
          data.controllers.length === 0 && data.workflows.length > 0
            ? "konverge run list"
            : "konverge queue list"
        }
      />
    </>
  );
}

const TONES: Readonly<Record<OverviewProblem["level"], Tone>> = {
  error: "bad",
  warning: "warn",
  info: "idle",
};

function Summary({
  overview: { problems, controllers, workflows, summary },
}: {
  readonly overview: Overview;
}) {
  const levels = new Set(problems.map(({ level }) => level));
  const tone =
    controllers.length + workflows.length === 0
      ? "idle"
      : levels.has("error")
        ? "bad"
        : levels.has("warning")
          ? "warn"
          : "good";
  return (
    <h1 class={`verdict ${tone}`}>
      <Status tone={tone}>{summary}</Status>
    </h1>
  );
}

function Controllers({ rows }: { readonly rows: readonly OverviewController[] }) {
  return (
    <div class="panel">
      <table class="stack">
        <thead>
          <tr>
            <th scope="col">Controller</th>
            <th scope="col">Last hour</th>
            <th scope="col" class="right">
              p50
            </th>
            <th scope="col" class="right">
              p99
            </th>
            <th scope="col" class="right">
              Waiting
            </th>
            <th scope="col" class="right">
              Oldest
            </th>
            <th scope="col" class="right">
              Running
            </th>
            <th scope="col" class="right">
              Workers
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <ControllerRow key={row.name} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ControllerRow({ row }: { readonly row: OverviewController }) {
  const {
    name,
    kind,
    group,
    version,
    minutes,
    waiting,
    active,
    oldestRequestAgeMs,
    p50Ms,
    p99Ms,
    workers,
  } = row;
  const type = group === "" ? version : `${group}/${version}`;
  return (
    <tr>
      <th scope="row">
        <a class="strong" href={viewHref(`/controllers/${encodeURIComponent(name)}`)} data-row>
          {name}
        </a>
        <div class="dim small">
          {kind} <span class="nowrap">{type}</span>
        </div>
      </th>
      <td data-label="Last hour">
        <Sparkline minutes={minutes} />
      </td>
      <td class="num right" data-label="p50">
        {shown(p50Ms)}
      </td>
      <td class="num right" data-label="p99">
        {shown(p99Ms)}
      </td>
      <td class="num right" data-label="Waiting">
        <a href={viewHref("/objects", { controller: name, phase: "waiting" })}>
          {formatCount(waiting)}
        </a>
      </td>
      <td class="num right" data-label="Oldest">
        {shown(oldestRequestAgeMs)}
      </td>
      <td class="num right" data-label="Running">
        <a href={viewHref("/objects", { controller: name, phase: "running" })}>
          {formatCount(active)}
        </a>
      </td>
      <WorkerCount workers={workers} />
    </tr>
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

/** Returns the address of the view with the details of a problem. */
function targetOf({ code, controller, key, workflow, run }: OverviewProblem): string {
  if (key !== undefined) return objectHref(key);
  if (run !== undefined) return runHref(run);
  switch (code) {
    case "no_workers":
    case "version_skew":
    case "unserved":
      return viewHref("/workers");
    case "breaker_open":
    case "breaker_half_open":
      return viewHref("/guards");
    case "run_blocked":
      return viewHref("/workflows", { workflow, status: "blocked" });
    case "run_failed":
      return viewHref("/workflows", { workflow, status: "failed" });
    case "dead_letters":
      return viewHref("/dead-letters", { controller });
    case "backlog":
      return viewHref("/objects", { controller, phase: "waiting" });
    case "failing":
      return viewHref("/attempts", { controller, outcome: "retry" });
    case "lost":
      return viewHref("/attempts", { controller, outcome: "lost" });
    case "loop":
    case "contention":
      return viewHref("/contention");
    case "paused":
      return viewHref("/objects", { controller, phase: "paused" });
  }
}
