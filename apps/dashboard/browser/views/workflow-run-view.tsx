import type { RunDetail } from "@konverge/contracts";
import { viewHref } from "../state/cluster.ts";
import { href } from "../state/router.ts";
import { defaultCluster } from "../state/session.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Json } from "../parts/json.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { RunStatus } from "../parts/status.tsx";
import { RunLogLines } from "./workflow/run-log-lines.tsx";
import { RunFacts } from "./workflow/run-facts.tsx";
import { idOf } from "../api/run-id.ts";
import { RunActions } from "./workflow/run-actions.tsx";
import { RunSentence } from "./workflow/run-sentence.tsx";
import { RunTimeline } from "./workflow/timeline.tsx";
import { useRun } from "./workflow/use-run.ts";

/** A workflow run: its status, timeline, values and operator actions. */
export function WorkflowRunView({ id }: { readonly id: string }) {
  const { run, trouble, reload } = useRun(id);
  const line = `konverge run get ${quote(id)}`;
  if (run === undefined) {
    return (
      <>
        <h1>{idOf(id)}</h1>
        {trouble?.code === "not_found" ? (
          <Empty title="Run not found">
            <p>
              {trouble.detail} <a href={viewHref("/workflows")}>Show all runs</a>
            </p>
          </Empty>
        ) : (
          <TroubleNote trouble={trouble} />
        )}
        {trouble === undefined ? <Loading /> : null}
      </>
    );
  }
  return (
    <>
      <header class="object-head">
        <div>
          <p class="crumbs">
            <a href={viewHref("/workflows", { workflow: run.workflow })}>{run.workflow}</a>
            <span aria-hidden="true">/</span>
            <span>version {run.version}</span>
          </p>
          <h1>{idOf(id)}</h1>
          <p class="run-sentence">
            <RunStatus of={run.status} /> <RunSentence run={run} />
          </p>
        </div>
        <RunActions run={run} onDone={reload} />
      </header>
      <TroubleNote trouble={trouble} />
      <RunFacts run={run} />
      <RunTimeline run={run} />
      <Values run={run} />
      <RunLogLines id={run.id} isActive={run.endedAt === undefined} />
      <CliLine line={line} />
      {run.cluster === defaultCluster ? (
        <p class="dim small links">
          <a href={href(`/jobs/queue/${encodeURIComponent(`workflow.${run.workflow}`)}`)}>
            Raw jobs of {run.workflow}
          </a>
        </p>
      ) : null}
    </>
  );
}

function Values({ run: { input, result, published } }: { readonly run: RunDetail }) {
  return (
    <div class="values">
      {published === undefined ? null : (
        <details open>
          <summary data-row>Published values</summary>
          <Json value={published} />
        </details>
      )}
      {input === undefined ? null : (
        <details>
          <summary data-row>Input</summary>
          <Json value={input} />
        </details>
      )}
      {result === undefined ? null : (
        <details open>
          <summary data-row>Result</summary>
          <Json value={result} />
        </details>
      )}
    </div>
  );
}
