import type { ObjectHistory } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { ErrorCode } from "../../parts/error-code.tsx";
import { plural } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { now, Time } from "../../parts/time.tsx";
import { approvalHref, driftHref } from "../../state/router.ts";
import { currentRival, toneOfObject } from "./current-contention.ts";

/** The state of an object, its cause, and when it runs next. */
export function ObjectSentence({ history }: { readonly history: ObjectHistory }) {
  const tone = toneOfObject(history);
  return (
    <div class={`object-sentence ${tone}`}>
      <p class="state">
        <Status tone={tone}>{PHASE_TEXTS[history.phase]}</Status>
      </p>
      <Reason history={history} />
      <Rival history={history} />
    </div>
  );
}

/** The writer that works against this controller now, or its own loop. */
function Rival({ history }: { readonly history: ObjectHistory }) {
  const rival = currentRival(history);
  const { loop } = history.contention;
  if (rival === undefined) {
    return loop === undefined ? null : (
      <p>
        Reconcile loop since <Time at={new Date(loop.sinceMs).toISOString()} />.
      </p>
    );
  }
  const { kind, manager, path, inEpisode, firstAt } = rival;
  const field = path === "" ? "fields" : <code>{path}</code>;
  return (
    <p>
      {kind === "takeover" ? (
        <>
          <strong>{manager}</strong> and this controller overwrite each other's {field}:{" "}
          {plural(inEpisode, "time")}, first <Time at={firstAt} />.
        </>
      ) : (
        <>
          <strong>{manager}</strong> caused {plural(inEpisode, "conflict")} on {field}.
        </>
      )}
    </p>
  );
}

const PHASE_TEXTS: Readonly<Record<ObjectHistory["phase"], string>> = {
  idle: "Idle",
  waiting: "Waiting",
  running: "Running",
  backoff: "Backoff",
  deadLettered: "Dead-lettered",
  paused: "Paused",
};

function Reason({ history }: { readonly history: ObjectHistory }): ComponentChildren {
  const { phase, paused, deadLetter, attempts, nextAt, failures, conflicts } = history;
  const [latest] = attempts;
  switch (phase) {
    case "deadLettered":
      return (
        <>
          <p>
            since {deadLetter === undefined ? "" : <Time at={deadLetter.since} />}, after{" "}
            {plural(failures, "failure")}. It runs again when its generation changes or an operator
            releases it.
          </p>
          {deadLetter?.error === undefined ? null : (
            <p class="error-text">
              <ErrorCode code={deadLetter.error.code} />
              {deadLetter.error.message}
            </p>
          )}
        </>
      );
    case "paused": {
      if (paused === undefined) return null;
      const { by, since, reason, scope } = paused;
      const extent = scope.kind === "namespace" ? `namespace ${scope.namespace}` : "controller";
      return (
        <p>
          by {by}, <Time at={since} />
          {scope.kind === "key" ? "" : ` (${extent})`}: {reason}. Requests stay queued.
        </p>
      );
    }
    case "backoff":
      return (
        <>
          <p>
            {failures > 0
              ? `after ${plural(failures, "consecutive failure")}`
              : conflicts > 0
                ? `after ${plural(conflicts, "consecutive conflict")}`
                : latest?.outcome === "deferred"
                  ? "after a deferred attempt"
                  : "until the next attempt"}
            {nextAt === undefined ? "." : <NextAttempt at={nextAt} />}
          </p>
          {failures > 0 && latest?.error !== undefined ? (
            <p class="error-text">
              <ErrorCode code={latest.error.code} />
              {latest.error.message}
            </p>
          ) : null}
        </>
      );
    case "waiting":
      return <p>for a worker.</p>;
    case "running":
      return <p>{latest === undefined ? "for the first time." : "now."}</p>;
    case "idle":
      return latest === undefined ? (
        <p>No attempt has finished yet.</p>
      ) : latest.outcome === "awaitApproval" ? (
        <p>
          Its plan waits for an approval since <Time at={latest.finishedAt} />.{" "}
          <a href={approvalHref(history.key)}>Review the plan</a>
        </p>
      ) : (
        <p>
          The last attempt ended <Time at={latest.finishedAt} />.{" "}
          {latest.kind === "plan" ? (
            <>
              It only planned. <a href={driftHref(history.key)}>Drift</a>
            </>
          ) : null}
        </p>
      );
  }
}

function NextAttempt({ at }: { readonly at: string }) {
  if (Date.parse(at) <= now.value) return <>; the next attempt is due.</>;
  return (
    <>
      ; the next attempt starts <Time at={at} />.
    </>
  );
}
