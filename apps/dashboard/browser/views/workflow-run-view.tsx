import type { RunDetail } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { viewHref } from "../state/cluster.ts";
import { href } from "../state/router.ts";
import { defaultCluster } from "../state/session.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Json } from "../parts/json.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { usePageState } from "../parts/page-state.ts";
import { RunStatus, toneOfRun } from "../parts/status.tsx";
import { RunLogLines } from "./workflow/run-log-lines.tsx";
import { RunFacts, RunNotes } from "./workflow/run-facts.tsx";
import { idOf } from "../api/run-id.ts";
import { RunActions } from "./workflow/run-actions.tsx";
import { RunRelations } from "./workflow/run-relations.tsx";
import { RunSentence } from "./workflow/run-sentence.tsx";
import { RunTimeline } from "./workflow/timeline.tsx";
import { useRun } from "./workflow/use-run.ts";

/** A workflow run: its status, values, timeline, relations and operator actions. */
export function WorkflowRunView({ id }: { readonly id: string }) {
  const { run, trouble, reload } = useRun(id);
  usePageState({ title: `${idOf(id)} · ${id.split("/")[0]}`, tone: run && toneOfRun(run.status) });
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
        </div>
        <RunActions run={run} onDone={reload} />
      </header>
      <TroubleNote trouble={trouble} />
      <div class="object-page">
        <aside class="object-aside" aria-label="Summary">
          <div class="aside-top">
            <div class={`object-sentence ${toneOfRun(run.status)}`}>
              <p class="run-sentence">
                <RunStatus of={run.status} /> <RunSentence run={run} />
              </p>
            </div>
            <RunFacts run={run} />
          </div>
          <div class="aside-live">
            <RunRelations run={run} />
            <CliLine line={`konverge run get ${quote(id)}`} />
            <Downloads run={run} />
          </div>
        </aside>
        <div class="object-main">
          <RunNotes run={run} />
          <Values run={run} />
          <RunTimeline run={run} />
          <RunLogLines id={run.id} isActive={run.endedAt === undefined} />
        </div>
      </div>
    </>
  );
}

/** The run as files, and its raw jobs. */
function Downloads({ run: { id, cluster, workflow } }: { readonly run: RunDetail }) {
  const path = href(`/v1/runs/${encodeURIComponent(id)}`);
  const name = id.replaceAll(/[^\w.-]+/g, "-");
  return (
    <p class="small links">
      <a href={path} download={`${name}.json`}>
        Download JSON
      </a>
      <a href={`${path}/history`} download={`${name}.history.json`}>
        Download history
      </a>
      {cluster === defaultCluster ? (
        <a href={href(`/jobs/queue/${encodeURIComponent(`workflow.${workflow}`)}`)}>Raw jobs</a>
      ) : null}
    </p>
  );
}

/** Input and result side by side, and the published values. */
function Values({
  run: { input, result, error, published, endedAt },
}: {
  readonly run: RunDetail;
}) {
  return (
    <div class="values">
      <Value title="Input">
        {input === undefined ? <p class="dim">none</p> : <Json value={input} />}
      </Value>
      <Value title="Result">
        {result !== undefined ? (
          <Json value={result} />
        ) : error !== undefined && endedAt !== undefined ? (
          <p class="bad">
            <code>{error.code}</code>
          </p>
        ) : (
          <p class="dim">{endedAt === undefined ? "not yet" : "none"}</p>
        )}
      </Value>
      {published === undefined ? null : (
        <Value title="Published values">
          <Json value={published} />
        </Value>
      )}
    </div>
  );
}

function Value({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  return (
    <details open>
      <summary data-row>{title}</summary>
      {children}
    </details>
  );
}
