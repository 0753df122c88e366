import type { RunDetail } from "@konverge/contracts";
import { viewHref } from "../../state/cluster.ts";
import { runHref } from "../../state/router.ts";
import { formatMs, plural } from "../../parts/format.ts";
import { Frames } from "../../parts/frames.tsx";
import { Fact } from "../../parts/fact.tsx";
import { now, Time } from "../../parts/time.tsx";
import { idOf } from "../../api/run-id.ts";
import { authorText } from "./wait-text.tsx";

/** The origin and progress of a run. */
export function RunFacts({ run }: { readonly run: RunDetail }) {
  const { key, labels, cancel, terminated, retry } = run;
  return (
    <dl class="facts">
      <Duration run={run} />
      <Round run={run} />
      {key === undefined ? null : (
        <Fact title="Key" note="one run at a time">
          <a href={viewHref("/workflows", { workflow: run.workflow, key })}>
            <code>{key}</code>
          </a>
        </Fact>
      )}
      {labels === undefined ? null : <Labels workflow={run.workflow} labels={labels} />}
      {retry === undefined ? null : <Retry retry={retry} />}
      {cancel === undefined ? null : (
        <Fact title="Cancelled by" note={cancel.reason}>
          {cancel.by ?? "another run"}
        </Fact>
      )}
      {terminated === undefined ? null : (
        <Fact title="Terminated by" note={terminated.reason}>
          {terminated.by ?? "another run"}
        </Fact>
      )}
    </dl>
  );
}

/** The steps of earlier rounds are dropped. */
function Round({ run: { round, roundStartedAt } }: { readonly run: RunDetail }) {
  if (round === undefined || roundStartedAt === undefined) return null;
  return (
    <Fact title="Round" note={<Time at={roundStartedAt} />}>
      <span class="num">{round}</span>
    </Fact>
  );
}

/** Each label leads to the runs that have it. */
function Labels({
  workflow,
  labels,
}: {
  readonly workflow: string;
  readonly labels: NonNullable<RunDetail["labels"]>;
}) {
  const texts = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return (
    <Fact title="Labels">
      {texts.map((label) => (
        <div key={label}>
          <a href={viewHref("/workflows", { workflow, label })}>
            <code>{label}</code>
          </a>
        </div>
      ))}
    </Fact>
  );
}

function Duration({
  run: { createdAt, startedAt, endedAt, by, steps },
}: {
  readonly run: RunDetail;
}) {
  const createdMs = Date.parse(createdAt);
  const endMs = endedAt === undefined ? now.value : Date.parse(endedAt);
  const started = (
    <>
      {by === undefined ? null : <div>by {by}</div>}
      {startedAt === undefined
        ? "not yet executed"
        : `first execution after ${formatMs(Date.parse(startedAt) - createdMs)}`}
    </>
  );
  return (
    <>
      <Fact title="Started" note={started}>
        <span class="num">
          <Time at={createdAt} />
        </span>
      </Fact>
      <Fact
        title={endedAt === undefined ? "Elapsed" : "Duration"}
        note={plural(steps.length, "recorded step")}
      >
        <span class="num">{formatMs(Math.max(0, endMs - createdMs))}</span>
      </Fact>
    </>
  );
}

function Retry({ retry }: { readonly retry: NonNullable<RunDetail["retry"]> }) {
  const { originalRun } = retry;
  return (
    <Fact title={originalRun === undefined ? "Retried" : "Retry of"} note={authorText(retry)}>
      {originalRun === undefined ? (
        <span>from the failed step</span>
      ) : (
        <a href={runHref(originalRun)}>{idOf(originalRun)}</a>
      )}
    </Fact>
  );
}

/** The signals that a run has dropped because their payload did not fit. */
function RefusedSignals({ refused }: { readonly refused: RunDetail["refusedSignals"] }) {
  const { count, last } = refused ?? { count: 0, last: [] };
  return (
    <>
      {last.map(({ id, name, by, at, message }) => (
        <div key={id} class="note warn">
          <span>
            Refused signal <b>{name}</b>, sent
            {by === undefined ? "" : ` by ${by}`} <Time at={at} />: {message}
          </span>
        </div>
      ))}
      {count <= last.length ? null : (
        <div class="note warn">
          <span>{count - last.length} earlier signals were refused</span>
        </div>
      )}
    </>
  );
}

/** The error, warnings, signals to look at and blocked reason of a run. */
export function RunNotes({ run }: { readonly run: RunDetail }) {
  const { status, error, warnings = [], unconsumedSignals = [], blockedReason } = run;
  const awaited = (run.waits ?? []).filter(({ kind }) => kind === "signal").map(({ step }) => step);
  const undosLeft = run.terminated === undefined ? [] : (run.undosLeft ?? []);
  return (
    <>
      {undosLeft.length === 0 ? null : (
        <div class="note warn">
          <span>Steps left without compensation: {undosLeft.join(", ")}</span>
        </div>
      )}
      {status !== "failed" || error === undefined ? null : (
        <div class="note bad">
          <code>{error.code}</code> <span>{error.message}</span>
          <Frames of={error.frames} />
        </div>
      )}
      {warnings.map(({ code, message }) => (
        <div key={code} class="note warn">
          <span>{message}</span>
        </div>
      ))}
      {unconsumedSignals.map(({ id, name, by, at }) => (
        <div key={id} class={awaited.length === 0 ? "note" : "note warn"}>
          <span>
            Unconsumed signal <b>{name}</b>, sent
            {by === undefined ? "" : ` by ${by}`} <Time at={at} />.
            {awaited.length === 0
              ? ""
              : ` The run waits for ${awaited.join(", ")}: send it under that name if it was misspelt.`}
          </span>
        </div>
      ))}
      <RefusedSignals refused={run.refusedSignals} />
      {blockedReason === undefined ? null : (
        <div class="note bad">
          <span>{blockedReason}</span>
          <Frames of={run.blockedError?.frames} />
        </div>
      )}
    </>
  );
}
