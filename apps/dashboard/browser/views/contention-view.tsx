import type { ContentionReport } from "@konverge/contracts";
import { shortName, partsOf } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { objectHref, query, setQuery } from "../state/router.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { formatCount, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { Matrix } from "./contention/matrix.tsx";

const EVERY_MS = 30_000;
const HOURS = ["1", "6", "24"] as const;
const SHOWN = 12;

/** Who is in whose way: objects, fields and managers. */
export function ContentionView() {
  const hours = query.value.get("hours") ?? "1";
  const { data, trouble } = useQuery<ContentionReport>(apiPath("contention", { hours }), EVERY_MS);
  return (
    <>
      <div class="title-row">
        <h1>Contention</h1>
        <div class="buttons" role="group" aria-label="How far back">
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
        A conflict is a write that another one beat to it. It costs a read and another try, never an
        update; a fight is when it does not stop.
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
  report: { contendedObjects, ownershipFlips, loops, competingManagers },
}: {
  readonly report: ContentionReport;
}) {
  if (
    contendedObjects.length + ownershipFlips.length + loops.length + competingManagers.length ===
    0
  ) {
    return (
      <Empty title="Nobody is in anybody's way">
        <p>Lost races, fields that go to and fro, and objects that run in circles appear here.</p>
      </Empty>
    );
  }
  return (
    <>
      {competingManagers.length === 0 ? null : (
        <CompetingManagers competingManagers={competingManagers} />
      )}
      {contendedObjects.length === 0 ? null : (
        <ContendedObjects contendedObjects={contendedObjects} />
      )}
      {ownershipFlips.length === 0 ? null : <OwnershipFlips ownershipFlips={ownershipFlips} />}
      {loops.length === 0 ? null : <Loops loops={loops} />}
    </>
  );
}

/** Whose attempts lost to whom. */
function CompetingManagers({ competingManagers }: Pick<ContentionReport, "competingManagers">) {
  return (
    <section>
      <h2>Who beats whom</h2>
      <p class="lead small">Attempts of a controller that lost a race to a field manager.</p>
      <Matrix
        label="Attempts of controllers that lost to a manager"
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

/** Which of our fields was taken from whom. */
function OwnershipFlips({ ownershipFlips }: Pick<ContentionReport, "ownershipFlips">) {
  return (
    <section>
      <h2>Fields that go to and fro</h2>
      <Matrix
        label="Fields that we took from a manager"
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
              <code>{path}</code>
              <div class="dim small">{resource}</div>
            </>
          );
        }}
      />
    </section>
  );
}

const LOOP_TEXTS: Readonly<Record<ContentionReport["loops"][number]["kind"], string>> = {
  selfTriggered: "its own writes start it again",
  requeue: "it asks to run again without end",
  ownershipFlip: "a field goes to and fro",
};

function Loops({ loops }: Pick<ContentionReport, "loops">) {
  return (
    <section>
      <h2>Run in circles, slowed down</h2>
      <div class="panel">
        <table class="stack">
          <thead>
            <tr>
              <th scope="col">Object</th>
              <th scope="col">Why</th>
              <th scope="col">Fields</th>
              <th scope="col" class="right">
                Since
              </th>
            </tr>
          </thead>
          <tbody>
            {loops.slice(0, SHOWN).map(({ key, kind, count, paths, managers, sinceMs }) => (
              <tr key={key}>
                <th scope="row">
                  <a class="strong" href={objectHref(key)} data-row>
                    {shortName(partsOf(key))}
                  </a>
                  <div class="dim small">{partsOf(key).controller}</div>
                </th>
                <td data-label="Why">
                  <Status tone="warn">{LOOP_TEXTS[kind]}</Status>
                  <span class="dim num"> {formatCount(count)} times</span>
                </td>
                <td data-label="Fields">
                  <span class="did">
                    {paths.slice(0, 3).map((path) => (
                      <code key={path}>{path}</code>
                    ))}
                    {managers.length === 0 ? null : (
                      <span class="dim">with {managers.join(", ")}</span>
                    )}
                  </span>
                </td>
                <td data-label="Since" class="right nowrap">
                  <Time at={new Date(sinceMs).toISOString()} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ContendedObjects({ contendedObjects }: Pick<ContentionReport, "contendedObjects">) {
  const most = Math.max(1, ...contendedObjects.map(({ conflicts }) => conflicts));
  return (
    <section>
      <h2>Most fought objects</h2>
      <div class="panel">
        <table class="stack">
          <thead>
            <tr>
              <th scope="col">Object</th>
              <th scope="col">Races lost</th>
            </tr>
          </thead>
          <tbody>
            {contendedObjects.slice(0, SHOWN).map((object) => (
              <tr key={`${object.resource}${shortName(object)}`}>
                <th scope="row">
                  <a
                    class="strong"
                    href={viewHref("/attempts", { name: object.name, namespace: object.namespace })}
                    data-row
                  >
                    {shortName(object)}
                  </a>
                  <div class="dim small">{object.resource}</div>
                </th>
                <td data-label="Races lost">
                  <span class="heat">
                    <span class="num strong">{formatCount(object.conflicts)}</span>
                    <span class="heat-bar" aria-hidden="true">
                      <span style={{ width: `${(object.conflicts / most) * 100}%` }} />
                    </span>
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {contendedObjects.length > SHOWN ? (
          <p class="more dim small">and {plural(contendedObjects.length - SHOWN, "more object")}</p>
        ) : null}
      </div>
    </section>
  );
}
