import type { RunDetail } from "@konverge/contracts";
import { viewHref } from "../../state/cluster.ts";
import { runHref } from "../../state/router.ts";
import { formatMs, plural } from "../../parts/format.ts";
import { now, Time } from "../../parts/time.tsx";
import { idOf } from "../../api/run-id.ts";
import { authorText } from "./wait-text.tsx";

/** The origin and progress of a run, with its error, warnings and unconsumed signals. */
export function RunFacts({ run }: { readonly run: RunDetail }) {
  const {
    createdAt,
    startedAt,
    endedAt,
    key,
    parent,
    by,
    cancel,
    retry,
    error,
    blockedReason,
    status,
  } = run;
  const endMs = endedAt === undefined ? now.value : Date.parse(endedAt);
  const done = run.steps.filter(({ name }) => !name.includes("!")).length;
  return (
    <>
      <dl class="facts">
        <div>
          <dt>Started</dt>
          <dd>
            <span class="num">
              <Time at={createdAt} />
            </span>
            <div class="dim small">
              {by === undefined ? null : <div>by {by}</div>}
              {startedAt === undefined
                ? "not yet executed"
                : `first execution after ${formatMs(Date.parse(startedAt) - Date.parse(createdAt))}`}
            </div>
          </dd>
        </div>
        <div>
          <dt>{endedAt === undefined ? "Elapsed" : "Duration"}</dt>
          <dd>
            <span class="num">{formatMs(Math.max(0, endMs - Date.parse(createdAt)))}</span>
            <div class="dim small">{plural(done, "recorded step")}</div>
          </dd>
        </div>
        {key === undefined ? null : (
          <div>
            <dt>Key</dt>
            <dd>
              <a href={viewHref("/workflows", { workflow: run.workflow, key })}>
                <code>{key}</code>
              </a>
              <div class="dim small">one run at a time</div>
            </dd>
          </div>
        )}
        {parent === undefined ? null : (
          <div>
            <dt>Parent</dt>
            <dd>
              <a href={runHref(parent)}>{idOf(parent)}</a>
              <div class="dim small">{parent.split("/")[0]}</div>
            </dd>
          </div>
        )}
        {retry === undefined ? null : (
          <div>
            <dt>{retry.originalRun === undefined ? "Retried" : "Retry of"}</dt>
            <dd>
              {retry.originalRun === undefined ? (
                <span>from the failed step</span>
              ) : (
                <a href={runHref(retry.originalRun)}>{idOf(retry.originalRun)}</a>
              )}
              <div class="dim small">{authorText(retry)}</div>
            </dd>
          </div>
        )}
        {cancel === undefined ? null : (
          <div>
            <dt>Cancelled by</dt>
            <dd>
              {cancel.by ?? "another run"}
              <div class="dim small">{cancel.reason}</div>
            </dd>
          </div>
        )}
      </dl>
      {status !== "failed" || error === undefined ? null : (
        <div class="note bad">
          <code>{error.code}</code> <span>{error.message}</span>
        </div>
      )}
      {(run.warnings ?? []).map(({ code, message }) => (
        <div key={code} class="note warn">
          <span>{message}</span>
        </div>
      ))}
      {(run.unconsumedSignals ?? []).map(({ id, name, by: sender, at }) => (
        <div key={id} class="note">
          <span>
            Unconsumed signal <b>{name}</b>, sent
            {sender === undefined ? "" : ` by ${sender}`} <Time at={at} />
          </span>
        </div>
      ))}
      {blockedReason === undefined ? null : (
        <div class="note bad">
          <span>{blockedReason}</span>
        </div>
      )}
    </>
  );
}
