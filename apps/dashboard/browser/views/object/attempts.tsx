import type { AttemptRecord } from "@konverge/records";
import { useState } from "preact/hooks";
import { formatMs, plural } from "../../parts/format.ts";
import { Empty } from "../../parts/notice.tsx";
import { Status, textOfOutcome, toneOfOutcome } from "../../parts/status.tsx";
import { Clock } from "../../parts/time.tsx";
import { query } from "../../state/router.ts";
import { linesOf, type Line } from "./attempt-groups.ts";
import { AttemptItem } from "./attempt-item.tsx";
import { Legend, scaleOf } from "./attempt-bar.tsx";
import { AttemptStrip } from "./attempt-strip.tsx";
import { numberOf } from "./conflicts-of.ts";

export interface AttemptsProps {
  /** Newest first. */
  readonly attempts: readonly AttemptRecord[];
  /** Number of newer attempts held back. */
  readonly fresh: number;
  readonly onShowFresh: () => void;
}

/** The attempts of an object, newest first. */
export function Attempts({ attempts, fresh, onShowFresh }: AttemptsProps) {
  const scaleMs = scaleOf(attempts);
  return (
    <section aria-labelledby="attempts">
      <div class="section-head">
        <h2 id="attempts" class="hidden">
          Attempts
        </h2>
        <AttemptStrip attempts={attempts} />
        <Legend scaleMs={scaleMs} />
      </div>
      <div role="status">
        {fresh === 0 ? null : (
          <button type="button" class="fresh" onClick={onShowFresh}>
            {plural(fresh, "new attempt")}
          </button>
        )}
      </div>
      {attempts.length === 0 ? (
        <Empty title="No finished attempts yet">
          <p>The first attempt appears here when it finishes.</p>
        </Empty>
      ) : (
        <ol class="attempts panel">
          {linesOf(attempts).map((line) => (
            <LineItem key={idOf(line)} line={line} all={attempts} scaleMs={scaleMs} />
          ))}
        </ol>
      )}
    </section>
  );
}

function idOf(line: Line): string {
  switch (line.kind) {
    case "attempt":
      return line.record.id;
    case "noops":
    case "failures":
      return `${line.kind} ${line.records.at(-1)?.id ?? ""}`;
    case "idle":
      return `idle ${line.ms}`;
  }
}

interface LineProps {
  readonly line: Line;
  readonly all: readonly AttemptRecord[];
  readonly scaleMs: number;
}

function LineItem({ line, all, scaleMs }: LineProps) {
  const [open, setOpen] = useState(false);
  switch (line.kind) {
    case "attempt":
      return <AttemptItem record={line.record} all={all} scaleMs={scaleMs} />;
    case "idle":
      return <li class="idle-gap">no attempts for {formatMs(line.ms)}</li>;
    case "noops":
    case "failures":
      if (open || line.records.some((record) => numberOf(record) === query.value.get("attempt"))) {
        return line.records.map((record) => (
          <AttemptItem key={record.id} record={record} all={all} scaleMs={scaleMs} />
        ));
      }
      return line.kind === "noops" ? (
        <li class="folded">
          <button type="button" class="quiet" data-row onClick={() => setOpen(true)}>
            {plural(line.records.length, "attempt")} without changes
          </button>
        </li>
      ) : (
        <FoldedFailures records={line.records} onOpen={() => setOpen(true)} />
      );
  }
}

/** Consecutive attempts with the same error, in one row. */
function FoldedFailures({
  records,
  onOpen,
}: {
  readonly records: readonly AttemptRecord[];
  readonly onOpen: () => void;
}) {
  const [latest] = records;
  const first = records.at(-1);
  if (latest === undefined || first === undefined) return null;
  return (
    <li class="folded-failures">
      <button type="button" class="quiet" data-row onClick={onOpen}>
        <Clock at={latest.startedAt} />
        <Status tone={toneOfOutcome(latest.outcome)}>
          {`${records.length} × ${textOfOutcome(latest.outcome)}`}
        </Status>
        <span class="bad clip">{latest.error?.message}</span>
        <span class="dim nowrap">
          same error since <Clock at={first.startedAt} />
        </span>
      </button>
    </li>
  );
}
