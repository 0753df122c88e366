import { shortName } from "@konverge/core";
import type { ContentionReport } from "@konverge/contracts";
import { partsOf } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { objectHref, query, setQuery } from "../state/router.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { formatCount, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { NextStart, Time } from "../parts/time.tsx";
import { Episodes } from "./contention/episodes.tsx";
import { Matrix } from "./contention/matrix.tsx";

const EVERY_MS = 30_000;
const HOURS = ["1", "6", "24"] as const;
const SHOWN = 12;

/** Contention by field manager, field and object. */
export function ContentionView() {
  const hours = query.value.get("hours") ?? "1";
  const { data, trouble } = useQuery<ContentionReport>(apiPath("contention", { hours }), EVERY_MS);
  return (
    <>
      <div class="title-row">
        <h1>Contention</h1>
        <div class="buttons" role="group" aria-label="Time range">
          {HOURS.map((choice) => (
            <button
              type="button"
              class="chip"
              key={choice}
              aria-pressed={choice === hours}
              onClick={() => setQuery({ hours: choice })}
            >
              {choice} h
            </button>
          ))}
        </div>
      </div>
      <p class="lead">
        A conflict means that another writer changed the object first. It costs one more read and
        write; no update is lost. A wasted write is a conflict, an overwrite of another manager, or
        a write in a reconcile loop.
      </p>
      <TroubleNote trouble={trouble} />
      {data === undefined ? (
        trouble === undefined && <Loading />
      ) : (
        <ContentionSections report={data} />
      )}
      <CliLine line={`konverge contention list --hours ${quote(hours)}`} />
    </>
  );
}

function ContentionSections({
  report: { episodes, moreEpisodes, contendedObjects, ownershipFlips, loops, competingManagers },
}: {
  readonly report: ContentionReport;
}) {
  if (
    episodes.length +
      contendedObjects.length +
      ownershipFlips.length +
      loops.length +
      competingManagers.length ===
    0
  ) {
    return (
      <Empty title="No contention">
        <p>Conflicts, ownership flips and reconcile loops appear here.</p>
      </Empty>
    );
  }
  const listed = new Set(episodes.map(({ key }) => key));
  return (
    <>
      {episodes.length === 0 ? null : <Episodes episodes={episodes} more={moreEpisodes} />}
      {competingManagers.length === 0 ? null : (
        <CompetingManagers competingManagers={competingManagers} />
      )}
      {contendedObjects.length === 0 ? null : (
        <ContendedObjects contendedObjects={contendedObjects} />
      )}
      {ownershipFlips.length === 0 ? null : <OwnershipFlips ownershipFlips={ownershipFlips} />}
      <Loops loops={loops.filter(({ key }) => !listed.has(key))} />
    </>
  );
}

function CompetingManagers({ competingManagers }: Pick<ContentionReport, "competingManagers">) {
  return (
    <section>
      <h2>Conflicts by field manager</h2>
      <p class="lead small">Attempts of a controller that conflicted with a field manager.</p>
      <Matrix
        label="Attempts with conflicts by controller and field manager"
        corner="Controller"
        meetings={competingManagers.map(({ controller, manager, attempts }) => ({
          row: controller,
          manager,
          count: attempts,
        }))}
        head={(controller) => <span class="strong">{controller}</span>}
      />
    </section>
  );
}

function OwnershipFlips({ ownershipFlips }: Pick<ContentionReport, "ownershipFlips">) {
  return (
    <section>
      <h2>Ownership flips</h2>
      <Matrix
        label="Ownership flips by field and field manager"
        corner="Field"
        meetings={ownershipFlips.map(({ resource, path, manager, count }) => ({
          row: `${path}\n${resource}`,
          manager,
          count,
        }))}
        head={(row) => {
          const [path, resource] = row.split("\n");
          return (
            <>
              <code>{path}</code> <span class="dim small">{resource}</span>
            </>
          );
        }}
      />
    </section>
  );
}

const LOOP_TEXTS: Readonly<Record<ContentionReport["loops"][number]["kind"], string>> = {
  selfTriggered: "triggered by its own writes",
  requeue: "requeues without a change",
  ownershipFlip: "ownership flips",
};

type Loop = ContentionReport["loops"][number];

const LOOP_COLUMNS: readonly Column<Loop>[] = [
  {
    title: "Object",
    cell: ({ key }) => (
      <>
        <a class="strong" href={objectHref(key)} data-row>
          {shortName(partsOf(key))}
        </a>
        <div class="dim small">{partsOf(key).controller}</div>
      </>
    ),
  },
  {
    title: "Cause",
    look: "nowrap",
    cell: ({ kind, count }) => (
      <>
        <Status tone={kind === "requeue" ? "idle" : "warn"}>{LOOP_TEXTS[kind]}</Status>
        <span class="dim num"> {formatCount(count)} times</span>
      </>
    ),
  },
  {
    title: "Fields",
    cell: ({ paths, managers }) => (
      <span class="did">
        {paths.slice(0, 3).map((path) => (
          <code key={path}>{path}</code>
        ))}
        {paths.length > 3 ? (
          <span class="dim">and {plural(paths.length - 3, "more field")}</span>
        ) : null}
        {managers.length === 0 ? null : <span class="dim">with {managers.join(", ")}</span>}
      </span>
    ),
  },
  {
    title: "Starts",
    cell: ({ protection, untilMs }) =>
      protection === "report" ? (
        <span class="dim">not throttled</span>
      ) : (
        <NextStart atMs={untilMs} />
      ),
  },
  {
    title: "Since",
    look: "right nowrap",
    cell: ({ sinceMs }) => <Time at={new Date(sinceMs).toISOString()} />,
  },
];

/** The loops without enough wasted writes for a list of their own. */
function Loops({ loops }: Pick<ContentionReport, "loops">) {
  if (loops.length === 0) return null;
  // Polling costs little; it is last.
  const sorted = loops.toSorted(
    (one, other) =>
      Number(one.kind === "requeue") - Number(other.kind === "requeue") || other.count - one.count,
  );
  return (
    <section>
      <h2>Other reconcile loops</h2>
      <div class="panel">
        <Table columns={LOOP_COLUMNS} rows={sorted.slice(0, SHOWN)} keyOf={({ key }) => key} />
        {loops.length > SHOWN ? (
          <p class="more dim small">and {plural(loops.length - SHOWN, "more loop")}</p>
        ) : null}
      </div>
    </section>
  );
}

type ContendedObject = ContentionReport["contendedObjects"][number];

const objectColumns = (most: number): readonly Column<ContendedObject>[] => [
  {
    title: "Object",
    cell: (object) => (
      <>
        <a
          class="strong"
          href={viewHref("/attempts", { name: object.name, namespace: object.namespace })}
          data-row
        >
          {shortName(object)}
        </a>
        <div class="dim small">{object.resource}</div>
      </>
    ),
  },
  {
    title: "Conflicts",
    cell: ({ conflicts }) => (
      <span class="heat">
        <span class="num strong">{formatCount(conflicts)}</span>
        <span class="heat-bar" aria-hidden="true">
          <span style={{ width: `${(conflicts / most) * 100}%` }} />
        </span>
      </span>
    ),
  },
];

function ContendedObjects({ contendedObjects }: Pick<ContentionReport, "contendedObjects">) {
  const most = Math.max(1, ...contendedObjects.map(({ conflicts }) => conflicts));
  return (
    <section>
      <h2>Most contended objects</h2>
      <div class="panel">
        <Table
          columns={objectColumns(most)}
          rows={contendedObjects.slice(0, SHOWN)}
          keyOf={(object) => `${object.resource}${shortName(object)}`}
        />
        {contendedObjects.length > SHOWN ? (
          <p class="more dim small">and {plural(contendedObjects.length - SHOWN, "more object")}</p>
        ) : null}
      </div>
    </section>
  );
}
