import type { AttemptRecord } from "@konverge/records";
import type { ObjectHistory } from "@konverge/contracts";
import { formatMs, plural } from "../../parts/format.ts";
import { Fact } from "../../parts/fact.tsx";
import { Outcome, Phase, Status } from "../../parts/status.tsx";
import { now, Time } from "../../parts/time.tsx";

/** The state of an object, its pause, dead letter and hints. */
export function ObjectFacts({ history }: { readonly history: ObjectHistory }) {
  const { paused, deadLetter, attempts } = history;
  return (
    <>
      <Facts history={history} />
      {paused === undefined ? null : <PauseNote pause={paused} />}
      {deadLetter === undefined ? null : <DeadLetterNote deadLetter={deadLetter} />}
      <Hints attempts={attempts} />
    </>
  );
}

function Facts({ history }: { readonly history: ObjectHistory }) {
  const { phase, nextAt, failures, conflicts, attempts, lastOutcome } = history;
  const total = attempts.reduce((sum, record) => sum + conflictsOf(record), 0);
  const [latest] = attempts;
  const consecutive =
    failures === 0 && conflicts === 0
      ? "no consecutive failures"
      : `${plural(failures, "consecutive failure")}, ${plural(conflicts, "conflict")}`;
  const takeovers = attempts.reduce((sum, { writes }) => {
    return sum + writes.filter(({ fieldsTakenOver = [] }) => fieldsTakenOver.length > 0).length;
  }, 0);
  return (
    <dl class="facts">
      <Fact
        title="State"
        note={phase === "backoff" && nextAt !== undefined && <NextAttempt at={nextAt} />}
      >
        <Phase of={phase} />
      </Fact>
      <Fact title="Last outcome" note={latest && <Time at={latest.finishedAt} />}>
        {lastOutcome === undefined ? (
          <span class="dim">no attempts yet</span>
        ) : (
          <>
            <Outcome of={lastOutcome} />
            {lastOutcome === "retry" ? <span class="dim"> {RETRIES[phase]}</span> : null}
          </>
        )}
      </Fact>
      <Fact title="Conflicts" note={`in ${plural(attempts.length, "attempt")}`}>
        {total === 0 && takeovers > 0 ? (
          <Status tone="warn">{`${plural(takeovers, "field owner")} overwritten`}</Status>
        ) : total === 0 ? (
          <Status tone="good">none</Status>
        ) : (
          <Status tone="race">{plural(total, "conflict")}</Status>
        )}
      </Fact>
      <Fact title="Median duration" note={consecutive}>
        <span class="num">{attempts.length === 0 ? "–" : formatMs(median(attempts))}</span>
      </Fact>
      {latest?.generation === undefined ? null : (
        <Fact
          title="Generation"
          note={
            latest.observedGeneration === undefined
              ? "observedGeneration not reported"
              : `observed ${latest.observedGeneration}`
          }
        >
          <span class="num">{latest.generation}</span>
        </Fact>
      )}
    </dl>
  );
}

/** What becomes of a failed attempt, by the state of its key. */
const RETRIES: Readonly<Record<ObjectHistory["phase"], string>> = {
  deadLettered: "and dead-lettered",
  paused: "and paused",
  backoff: "and will be retried",
  waiting: "and will be retried",
  running: "and is retried now",
  idle: "",
};

function NextAttempt({ at }: { readonly at: string }) {
  if (Date.parse(at) <= now.value) return <>next attempt is due</>;
  return (
    <>
      next attempt <Time at={at} />
    </>
  );
}

function PauseNote({
  pause: { by, since, reason, scope },
}: {
  readonly pause: NonNullable<ObjectHistory["paused"]>;
}) {
  const extent = scope.kind === "namespace" ? `namespace ${scope.namespace}` : "entire controller";
  return (
    <div class="note warn">
      <strong>
        <Status tone="warn">Paused</Status>
      </strong>{" "}
      by {by}, <Time at={since} />: {reason}
      {scope.kind === "key" ? null : <span class="dim"> ({extent})</span>}
    </div>
  );
}

function DeadLetterNote({
  deadLetter: { since, error },
}: {
  readonly deadLetter: NonNullable<ObjectHistory["deadLetter"]>;
}) {
  return (
    <div class="note bad">
      <strong>
        <Status tone="bad">Dead letter</Status>
      </strong>{" "}
      since <Time at={since} />, until the generation changes or an operator releases it.
      {error === undefined ? null : (
        <div>
          <code>{error.code}</code> {error.message}
        </div>
      )}
    </div>
  );
}

/** The distinct hints of the attempts shown. */
function Hints({ attempts }: { readonly attempts: readonly AttemptRecord[] }) {
  const hints = new Map(
    attempts.flatMap(({ hints: given = [] }) => given).map((hint) => [hint.code, hint]),
  );
  if (hints.size === 0) return null;
  return (
    <div class="note warn">
      <strong>
        <Status tone="warn">Hints</Status>
      </strong>
      <ul>
        {[...hints.values()].map(({ code, message }) => (
          <li key={code}>
            {message} <code class="dim">docs/hints.md#{code}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Returns the number of conflicts of an attempt. */
export function conflictsOf({ writes, conflicts }: AttemptRecord): number {
  return writes.reduce((sum, write) => sum + write.conflicts.length, conflicts.length);
}

function median(attempts: readonly AttemptRecord[]): number {
  const sorted = attempts.map(({ durationMs }) => durationMs).toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
