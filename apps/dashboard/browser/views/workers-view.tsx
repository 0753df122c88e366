import type { WorkerList } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { formatBytes, formatCount, formatMs, plural } from "../parts/format.ts";
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
  { title: "Slots used", look: "num nowrap", cell: ({ load }) => <Slots load={load} /> },
  {
    title: "Memory",
    look: "num right nowrap",
    cell: ({ load }) => <Memory load={load} />,
  },
  {
    title: "Event loop",
    look: "num right nowrap",
    cell: ({ load }) => <Delay load={load} />,
  },
  {
    title: "Attempts/min",
    look: "num right",
    cell: ({ load }) =>
      load?.attemptsPerMinute === undefined ? UNKNOWN : formatCount(load.attemptsPerMinute),
  },
  {
    title: "Calls in flight",
    look: "num right secondary",
    cell: ({ load }) => (load === undefined ? UNKNOWN : formatCount(load.calls.inFlight)),
  },
  { title: "Runs", cell: (worker) => <Announced worker={worker} skewed={skewed} /> },
  { title: "Role", look: "nowrap secondary", cell: ({ role }) => ROLES[role] },
  { title: "Leads", look: "nowrap", cell: (worker) => <Leads worker={worker} /> },
  { title: "Host", look: "nowrap secondary", cell: ({ host }) => host },
  { title: "Version", look: "num nowrap secondary", cell: ({ version }) => version },
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

const UNKNOWN = <span class="zero">–</span>;
/** Above this delay, leases and timers are late. */
const LATE_LOOP_MS = 200;
const FULL_HEAP_SHARE = 0.85;

type Load = { readonly load: Worker["load"] };

/** Running attempts of all slots, with the controllers on hover. */
function Slots({ load }: Load) {
  if (load === undefined) return UNKNOWN;
  const slots = Object.entries(load.slots);
  const running = slots.reduce((sum, [, each]) => sum + each.running, 0);
  const limit = slots.reduce((sum, [, each]) => sum + each.limit, 0);
  const busy = slots.filter(([, each]) => each.running > 0);
  const text = busy.map(([name, each]) => `${name} ${each.running} of ${each.limit}`).join(", ");
  return (
    <span class="slots" title={text}>
      <meter min={0} max={Math.max(1, limit)} value={running} aria-label="Slots used" />
      {formatCount(running)} of {formatCount(limit)}
    </span>
  );
}

/** Resident memory, and a warning if the heap is nearly full. */
function Memory({ load }: Load) {
  if (load === undefined) return UNKNOWN;
  const { memoryBytes, heapBytes, heapLimitBytes } = load;
  const title = `heap ${formatBytes(heapBytes)} of ${formatBytes(heapLimitBytes)}`;
  const isFull = heapBytes > FULL_HEAP_SHARE * heapLimitBytes;
  return (
    <span title={title}>
      {isFull ? (
        <Status tone="bad">{`${formatBytes(memoryBytes)}, heap nearly full`}</Status>
      ) : (
        formatBytes(memoryBytes)
      )}
    </span>
  );
}

/** The number of controllers whose watches the worker leads, with their names on hover. */
function Leads({ worker: { load, controllers } }: { readonly worker: Worker }) {
  if (load?.leads === undefined) return UNKNOWN;
  const { leads } = load;
  if (leads.length === 0) return <span class="zero">none</span>;
  return (
    <span title={leads.join(", ")}>
      {leads.length} of {controllers.length}
    </span>
  );
}

/** The 99th percentile of the delay of timers. */
function Delay({ load }: Load) {
  if (load === undefined) return UNKNOWN;
  const { eventLoopDelayMs } = load;
  const text = `${formatMs(eventLoopDelayMs)} late`;
  return eventLoopDelayMs >= LATE_LOOP_MS ? <Status tone="warn">{text}</Status> : <>{text}</>;
}

/** The controllers and workflows of a worker, folded unless a controller runs in different versions. */
function Announced({
  worker: { controllers, definitions, workflows = {} },
  skewed,
}: {
  readonly worker: Worker;
  readonly skewed: readonly string[];
}) {
  const count = Object.keys(workflows).length;
  const summary = [
    plural(controllers.length, "controller"),
    ...(count === 0 ? [] : [plural(count, "workflow")]),
  ].join(", ");
  return (
    <details class="announced" open={controllers.some((name) => skewed.includes(name))}>
      <summary class="nowrap">{summary}</summary>
      <span class="tags">
        {controllers.map((name) => (
          <a
            class="tag"
            key={name}
            href={viewHref(`/controllers/${encodeURIComponent(name)}`)}
            title={definitions[name]?.digest}
          >
            {name}
            {skewed.includes(name) ? (
              <span class="dim"> {definitions[name]?.digest.slice(0, 7)}</span>
            ) : null}
          </a>
        ))}
        {Object.entries(workflows).map(([name, version]) => (
          <a class="tag" key={`workflow ${name}`} href={viewHref("/workflows", { workflow: name })}>
            {name} <span class="dim">version {version}</span>
          </a>
        ))}
      </span>
    </details>
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
