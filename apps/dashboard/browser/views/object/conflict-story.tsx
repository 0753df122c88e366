import type { AttemptRecord } from "@konverge/records";
import { formatMs } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Clock } from "../../parts/time.tsx";
import type { LostWrite } from "./conflict-group.ts";

type Conflict = AttemptRecord["writes"][number]["conflicts"][number];

interface Landed {
  readonly version: string;
  /** Of a later attempt. */
  readonly at?: string;
}

const SHOWN_PATHS = 4;

/** A write that lost all its races in this attempt, and where it landed after all. */
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
          {resource} {namespace === undefined ? name : `${namespace}/${name}`}
        </span>
        {subresource === undefined ? null : <span class="dim"> {subresource}</span>}
        <span class="versions num">did not land here</span>
      </header>
      <ConflictSteps conflicts={conflicts} landed={findLanding(target, record, all)} />
    </article>
  );
}

/** Read, beaten by whom on which path, waited, read again, and so on until it landed. */
export function ConflictSteps({
  conflicts,
  landed,
}: {
  readonly conflicts: readonly Conflict[];
  readonly landed: Landed | undefined;
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
            We had read <span class="num strong">{conflict.readVersion}</span>;{" "}
            <Winners of={conflict} /> wrote first.
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
        {landed === undefined ? (
          <Status tone="idle">not landed in the attempts shown</Status>
        ) : (
          <>
            <Status tone="good">landed</Status>
            <div>
              as version <span class="num strong">{landed.version}</span>
              {landed.at === undefined ? null : (
                <>
                  {" "}
                  in the attempt of <Clock at={landed.at} />
                </>
              )}
            </div>
          </>
        )}
      </li>
    </ol>
  );
}

function Winners({ of: { competingWriters } }: { readonly of: Conflict }) {
  const names = [...new Set(competingWriters.map(({ manager }) => manager))];
  if (names.length === 0) return <span class="dim">a writer that is not known</span>;
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

/** The first write of the same thing that landed afterwards. */
function findLanding(
  conflict: LostWrite["target"],
  record: AttemptRecord,
  all: readonly AttemptRecord[],
): Landed | undefined {
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
