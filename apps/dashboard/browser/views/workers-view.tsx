import type { WorkerList } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";

type Worker = WorkerList["items"][number];

const EVERY_MS = 5_000;

/** The workers with their controllers, workflows and versions. */
export function WorkersView() {
  const { data, trouble } = useQuery<WorkerList>(apiPath("workers"), EVERY_MS);
  const workers = data?.items.toSorted((one, other) => one.workerId.localeCompare(other.workerId));
  const skewed = skewOf(workers ?? []);
  return (
    <>
      <h1>Workers</h1>
      <p class="lead">
        A dead worker disappears from this list after 15 s. Other workers continue its work.
      </p>
      <TroubleNote trouble={trouble} />
      {skewed.length === 0 ? null : (
        <div class="note warn">
          <strong>
            <Status tone="warn">Different versions</Status>
          </strong>{" "}
          of {skewed.join(", ")} are running. This is expected during a rolling update.
        </div>
      )}
      {workers === undefined ? (
        trouble === undefined && <Loading />
      ) : workers.length === 0 ? (
        <Empty title="No workers">
          <p>Start a worker to process requests. They stay queued.</p>
          <CliLine line="konverge worker --config konverge.config.ts" />
        </Empty>
      ) : (
        <WorkerTable workers={workers} skewed={skewed} />
      )}
      <CliLine line="konverge worker list" />
    </>
  );
}

function WorkerTable({
  workers,
  skewed,
}: {
  readonly workers: readonly Worker[];
  readonly skewed: readonly string[];
}) {
  return (
    <div class="panel gap">
      <table class="stack">
        <caption class="hidden">{plural(workers.length, "worker")}</caption>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">Role</th>
            <th scope="col">Runs</th>
            <th scope="col">Host</th>
            <th scope="col">Version</th>
            <th scope="col" class="right">
              Started
            </th>
          </tr>
        </thead>
        <tbody>
          {workers.map(({ workerId, role, host, version, startedAt, ...announced }) => (
            <tr key={workerId}>
              <th scope="row" class="strong">
                {workerId}
              </th>
              <td data-label="Role">{ROLES[role] ?? role}</td>
              <td data-label="Runs">
                <Announced worker={announced} skewed={skewed} />
              </td>
              <td data-label="Host">{host}</td>
              <td data-label="Version" class="num">
                {version}
              </td>
              <td data-label="Started" class="right nowrap">
                <Time at={startedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Announced({
  worker: { controllers, definitions, workflows = {} },
  skewed,
}: {
  readonly worker: Pick<Worker, "controllers" | "definitions" | "workflows">;
  readonly skewed: readonly string[];
}) {
  return (
    <span class="tags">
      {controllers.map((name) => (
        <span class="tag" key={name} title={definitions[name]?.digest}>
          {name}
          {skewed.includes(name) ? (
            <span class="dim"> {definitions[name]?.digest.slice(0, 7)}</span>
          ) : null}
        </span>
      ))}
      {Object.entries(workflows).map(([name, version]) => (
        <a class="tag" key={`workflow ${name}`} href={viewHref("/workflows", { workflow: name })}>
          {name} <span class="dim">version {version}</span>
        </a>
      ))}
    </span>
  );
}

const ROLES: Readonly<Record<string, string>> = {
  all: "watch and work",
  watch: "watch",
  work: "work",
};

/** Returns the controllers with more than one running version. */
function skewOf(workers: readonly Worker[]): string[] {
  const digests = new Map<string, Set<string>>();
  for (const { definitions } of workers) {
    for (const [name, { digest }] of Object.entries(definitions)) {
      digests.set(name, (digests.get(name) ?? new Set()).add(digest));
    }
  }
  return [...digests].filter(([, found]) => found.size > 1).map(([name]) => name);
}
