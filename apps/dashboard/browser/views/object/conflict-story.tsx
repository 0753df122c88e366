import { shortName } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";
import { formatMs } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Clock } from "../../parts/time.tsx";
import type { LostWrite } from "./conflict-group.ts";

type Conflict = AttemptRecord["writes"][number]["conflicts"][number];

interface Written {
  readonly version: string;
  /** Start of the later attempt that wrote it. */
  readonly at?: string;
}

const SHOWN_PATHS = 4;

/** A write without success in this attempt, and the later attempt that wrote it. */
export function LostWriteCard({
  lost: { target, conflicts },
  record,
  all,
}: {
  readonly lost: LostWrite;
  readonly record: AttemptRecord;
  readonly all: readonly AttemptRecord[];
}) {
  const { resource, namespace, name, subresource } = target;
  return (
    <article class="write">
      <header>
        <span class="tag">write</span>{" "}
        <span class="strong">
          {resource} {shortName({ namespace, name })}
        </span>
        {subresource === undefined ? null : <span class="dim"> {subresource}</span>}
        <span class="versions num">not written in this attempt</span>
      </header>
      <ConflictSteps conflicts={conflicts} written={findLaterWrite(target, record, all)} />
    </article>
  );
}

/** The conflicts of a write in order: version read, competing writer and fields, wait, next read. */
export function ConflictSteps({
  conflicts,
  written,
}: {
  readonly conflicts: readonly Conflict[];
  readonly written: Written | undefined;
}) {
  return (
    <ol class="steps">
      {conflicts.map((conflict, index) => (
        <li
          key={index}
          class="race"
          data-conflict
          data-read={conflict.readVersion}
          data-found={conflict.foundVersion}
        >
          <Status tone="race">conflict</Status>
          <div>
            Read <span class="num strong">{conflict.readVersion}</span>, but{" "}
            <CompetingWriters of={conflict} /> wrote first.
            <span class="dim">
              {" "}
              Waited {formatMs(conflict.waitedMs)}
              {conflict.foundVersion === undefined ? null : (
                <>
                  , then read <span class="num">{conflict.foundVersion}</span>
                </>
              )}
              .
            </span>
            <Paths of={conflict} />
          </div>
        </li>
      ))}
      <li>
        {written === undefined ? (
          <Status tone="idle">not written in the attempts shown</Status>
        ) : (
          <>
            <Status tone="good">written</Status>
            <div>
              as version <span class="num strong">{written.version}</span>
              {written.at === undefined ? null : (
                <>
                  {" "}
                  in the attempt at <Clock at={written.at} />
                </>
              )}
            </div>
          </>
        )}
      </li>
    </ol>
  );
}

function CompetingWriters({ of: { competingWriters } }: { readonly of: Conflict }) {
  const names = [...new Set(competingWriters.map(({ manager }) => manager))];
  if (names.length === 0) return <span class="dim">an unknown writer</span>;
  return <span class="strong">{names.join(" and ")}</span>;
}

function Paths({ of: { competingWriters } }: { readonly of: Conflict }) {
  const shown = competingWriters.flatMap(({ manager, operation, paths }) =>
    paths.slice(0, SHOWN_PATHS).map((path) => ({ manager, operation, path })),
  );
  const left = competingWriters.reduce(
    (sum, { paths }) => sum + Math.max(0, paths.length - SHOWN_PATHS),
    0,
  );
  if (shown.length === 0) return null;
  return (
    <ul class="paths">
      {shown.map(({ manager, operation, path }) => (
        <li key={`${manager}${operation}${path}`}>
          <code>{path}</code> <span class="dim">{operation}</span>
        </li>
      ))}
      {left === 0 ? null : <li class="dim">and {left} more</li>}
    </ul>
  );
}

/** Returns the first successful later write of the same target. */
function findLaterWrite(
  conflict: LostWrite["target"],
  record: AttemptRecord,
  all: readonly AttemptRecord[],
): Written | undefined {
  const at = all.indexOf(record);
  for (const later of all.slice(0, Math.max(0, at)).toReversed()) {
    const write = later.writes.find(
      ({ resource, namespace, name, subresource }) =>
        resource === conflict.resource &&
        namespace === conflict.namespace &&
        name === conflict.name &&
        subresource === conflict.subresource,
    );
    if (write?.toVersion !== undefined) return { version: write.toVersion, at: later.startedAt };
  }
  return undefined;
}
