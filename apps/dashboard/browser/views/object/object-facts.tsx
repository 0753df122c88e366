import type { AttemptRecord } from "@konverge/records";
import type { ObjectHistory } from "@konverge/contracts";
import { formatMs, plural } from "../../parts/format.ts";
import { Fact } from "../../parts/fact.tsx";
import { HintNote } from "../../parts/hint-note.tsx";
import { Outcome, Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { conflictsOf } from "./conflicts-of.ts";

/** The last outcome of an object and the totals of its attempts. */
export function ObjectFacts({ history }: { readonly history: ObjectHistory }) {
  const { phase, failures, conflicts, attempts, lastOutcome } = history;
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
          <Status tone="warn">{plural(takeovers, "overwrite")}</Status>
        ) : total === 0 ? (
          <Status tone="good">none</Status>
        ) : (
          <Status tone="race">{plural(total, "conflict")}</Status>
        )}
      </Fact>
      <Fact title="Median duration" note={consecutive}>
        <span class="num">{attempts.length === 0 ? "–" : formatMs(median(attempts))}</span>
      </Fact>
      <Fact title="Generation" note={observedNote(latest)}>
        <span class="num">{latest?.generation ?? "–"}</span>
      </Fact>
    </dl>
  );
}

function observedNote(latest: AttemptRecord | undefined): string {
  const observed = latest?.observedGeneration;
  return observed === undefined ? "observedGeneration not reported" : `observed ${observed}`;
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

/** The distinct hints of the attempts shown. */
export function Hints({ attempts }: { readonly attempts: readonly AttemptRecord[] }) {
  const hints = new Map(
    attempts.flatMap(({ hints: given = [] }) => given).map((hint) => [hint.code, hint]),
  );
  return [...hints.values()].map((hint) => <HintNote key={hint.code} hint={hint} />);
}

function median(attempts: readonly AttemptRecord[]): number {
  const sorted = attempts.map(({ durationMs }) => durationMs).toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
