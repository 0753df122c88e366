import type { AttemptRecord } from "@konverge/records";
import type { ObjectHistory } from "@konverge/contracts";
import { formatMs, plural } from "../../parts/format.ts";
import { Outcome, Phase, Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";

/** The state of an object, its pause, dead letter and hints. */
export function ObjectFacts({ history }: { readonly history: ObjectHistory }) {
  const { phase, nextAt, failures, conflicts, attempts, lastOutcome, paused, deadLetter } = history;
  const lost = attempts.reduce((sum, record) => sum + conflictsOf(record), 0);
  const [latest] = attempts;
  return (
    <>
      <dl class="facts">
        <div>
          <dt>State</dt>
          <dd>
            <Phase of={phase} />
            {nextAt === undefined ? null : (
              <div class="dim small">
                next attempt <Time at={nextAt} />
              </div>
            )}
          </dd>
        </div>
        <div>
          <dt>Last outcome</dt>
          <dd>
            {lastOutcome === undefined ? (
              <span class="dim">no attempts yet</span>
            ) : (
              <Outcome of={lastOutcome} />
            )}
            {latest === undefined ? null : (
              <div class="dim small">
                <Time at={latest.finishedAt} />
              </div>
            )}
          </dd>
        </div>
        <div>
          <dt>Conflicts</dt>
          <dd>
            {lost === 0 ? (
              <Status tone="good">none</Status>
            ) : (
              <Status tone="race">{plural(lost, "conflict")}</Status>
            )}
            <div class="dim small">in {plural(attempts.length, "attempt")}</div>
          </dd>
        </div>
        <div>
          <dt>Median duration</dt>
          <dd>
            <span class="num">{attempts.length === 0 ? "–" : formatMs(median(attempts))}</span>
            <div class="dim small">
              {failures === 0 && conflicts === 0
                ? "no consecutive failures"
                : `${failures} consecutive failures, ${conflicts} conflicts`}
            </div>
          </dd>
        </div>
        {latest?.generation === undefined ? null : (
          <div>
            <dt>Generation</dt>
            <dd>
              <span class="num">{latest.generation}</span>
              <div class="dim small">
                {latest.observedGeneration === undefined
                  ? "observedGeneration not reported"
                  : `observed ${latest.observedGeneration}`}
              </div>
            </dd>
          </div>
        )}
      </dl>
      {paused === undefined ? null : (
        <div class="note warn">
          <strong>
            <Status tone="warn">Paused</Status>
          </strong>{" "}
          by {paused.by}, <Time at={paused.since} />: {paused.reason}
          {paused.scope.kind === "key" ? null : (
            <span class="dim">
              {" "}
              (
              {paused.scope.kind === "namespace"
                ? `namespace ${paused.scope.namespace}`
                : "entire controller"}
              )
            </span>
          )}
        </div>
      )}
      {deadLetter === undefined ? null : (
        <div class="note bad">
          <strong>
            <Status tone="bad">Dead letter</Status>
          </strong>{" "}
          since <Time at={deadLetter.since} />, until the generation changes or an operator releases
          it.
          {deadLetter.error === undefined ? null : (
            <div>
              <code>{deadLetter.error.code}</code> {deadLetter.error.message}
            </div>
          )}
        </div>
      )}
      <Hints attempts={attempts} />
    </>
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
