import type { WorkerList } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { ClusterTable } from "./cluster-table.tsx";

type Worker = WorkerList["items"][number];

const EVERY_MS = 5_000;

/** The workers with their controllers, workflows and versions, and the clusters that they serve. */
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
      <ClusterTable />
    </>
  );
}

const columnsOf = (skewed: readonly string[]): readonly Column<Worker>[] => [
  { title: "Worker", look: "strong", cell: ({ workerId }) => workerId },
  { title: "Role", cell: ({ role }) => ROLES[role] },
  { title: "Runs", cell: (worker) => <Announced worker={worker} skewed={skewed} /> },
  { title: "Host", cell: ({ host }) => host },
  { title: "Version", look: "num", cell: ({ version }) => version },
  { title: "Started", look: "right nowrap", cell: ({ startedAt }) => <Time at={startedAt} /> },
];

function WorkerTable({
  workers,
  skewed,
}: {
  readonly workers: readonly Worker[];
  readonly skewed: readonly string[];
}) {
  return (
    <div class="panel gap">
      <Table
        caption={plural(workers.length, "worker")}
        columns={columnsOf(skewed)}
        rows={workers}
        keyOf={({ workerId }) => workerId}
      />
    </div>
  );
}

function Announced({
  worker: { controllers, definitions, workflows = {} },
  skewed,
}: {
  readonly worker: Worker;
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

const ROLES: Readonly<Record<Worker["role"], string>> = {
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
