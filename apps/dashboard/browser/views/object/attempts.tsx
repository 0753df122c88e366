import type { AttemptRecord } from "@konverge/records";
import { useState } from "preact/hooks";
import { formatMs, plural } from "../../parts/format.ts";
import { Empty } from "../../parts/notice.tsx";
import { linesOf, type Line } from "./attempt-groups.ts";
import { AttemptItem } from "./attempt-item.tsx";
import { Legend, spanOf } from "./attempt-bar.tsx";

export interface AttemptsProps {
  /** Newest first. */
  readonly attempts: readonly AttemptRecord[];
  /** Number of newer attempts held back. */
  readonly fresh: number;
  readonly onShowFresh: () => void;
}

/** The attempts of an object, newest first. */
export function Attempts({ attempts, fresh, onShowFresh }: AttemptsProps) {
  const scaleMs = Math.max(1, ...attempts.map(spanOf));
  return (
    <section aria-labelledby="attempts">
      <div class="section-head">
        <h2 id="attempts">Attempts</h2>
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
      return `noops ${line.records.at(-1)?.id ?? ""}`;
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
      if (open) {
        return line.records.map((record) => (
          <AttemptItem key={record.id} record={record} all={all} scaleMs={scaleMs} />
        ));
      }
      return (
        <li class="folded">
          <button type="button" class="quiet" data-row onClick={() => setOpen(true)}>
            {plural(line.records.length, "attempt")} without changes
          </button>
        </li>
      );
  }
}
