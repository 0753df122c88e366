import type { KeyItem, KeyList, QueueList } from "@konverge/contracts";
import { defined, type KeyPhase, shortName } from "@konverge/core";
import { call } from "../api/call.ts";
import { partsOf } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, cluster } from "../state/cluster.ts";
import { href, objectHref, query } from "../state/router.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { ActionButton, type OperatorAction } from "../parts/action-dialog.tsx";
import { Pager } from "../parts/pager.tsx";
import { SelectBox, SelectionBar, useSelection, type Selection } from "../parts/selection.tsx";
import { Outcome, Phase, Status } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Time } from "../parts/time.tsx";

const LIMIT = 100;
const EVERY_MS = 10_000;

/** The objects of all controllers with their state, queues and pauses. */
export function ObjectsView() {
  const filters = filtersOf(["name", "namespace", "controller", "phase"]);
  const cursor = query.value.get("cursor") ?? undefined;
  const path = apiPath("keys", { ...filters, cursor, limit: String(LIMIT) });
  const keys = useQuery<KeyList>(path, EVERY_MS);
  const queues = useQuery<QueueList>(apiPath("queues"), EVERY_MS);
  const reload = () => {
    keys.reload();
    queues.reload();
  };
  const { data, trouble, loading } = keys;
  const { controller } = filters;
  const selection = useSelection();
  const itemOf = (key: string) => data?.items.find((item) => item.key === key);
  return (
    <>
      <div class="title-row">
        <h1>Objects</h1>
        <div class="buttons">
          {controller === undefined ? null : (
            <PauseController
              controller={controller}
              namespace={filters["namespace"]}
              onDone={reload}
            />
          )}
        </div>
      </div>
      <PhaseTabs queues={queues.data?.items} controller={controller} phase={filters["phase"]} />
      <Filters>
        <Filter name="name" label="Name" placeholder="any part" />
        <Filter name="namespace" label="Namespace" />
        <Filter
          name="controller"
          label="Controller"
          choices={(queues.data?.items ?? []).map((queue) => queue.controller)}
        />
      </Filters>
      <TroubleNote trouble={trouble ?? queues.trouble} />
      <div aria-busy={loading}>
        {/* Both at once: pauses above the list would move it. */}
        {queues.data === undefined ? null : data === undefined && trouble === undefined ? null : (
          <>
            <Pauses queues={queues.data.items} onDone={reload} />
          </>
        )}
        {data === undefined || (queues.loading && queues.data === undefined) ? (
          trouble === undefined && <Loading rows={10} />
        ) : data.items.length === 0 && data.next === undefined ? (
          <Empty title="No matching objects">
            <p>Objects appear after their first request. Name matches any part.</p>
          </Empty>
        ) : (
          <>
            <SelectionBar
              selection={selection}
              shown={data.items.map(({ key }) => key)}
              actions={["reconcile", "pause", "resume", "release", "cancel"]}
              applicable={{
                pause: (key) => itemOf(key)?.paused === undefined,
                resume: (key) => itemOf(key)?.paused?.scope.kind === "key",
                release: (key) => itemOf(key)?.deadLetter !== undefined,
              }}
              pendingOf={(key) => itemOf(key)?.pending}
              onDone={reload}
            />
            <KeyTable items={data.items} selection={selection} />
            <Pager next={data.next} shown={plural(data.items.length, "object")} />
          </>
        )}
      </div>
      <CliLine line={["konverge object list", ...flagsOf(filters)].join(" ")} />
    </>
  );
}

const columnsOf = (selection: Selection): readonly Column<KeyItem>[] => [
  {
    title: "Object",
    cell: ({ key }) => (
      <>
        <SelectBox objectKey={key} selection={selection} />
        <a class="strong" href={objectHref(key)} data-row>
          {shortName(partsOf(key))}
        </a>
      </>
    ),
  },
  { title: "Controller", cell: ({ key }) => partsOf(key).controller },
  { title: "State", cell: ({ phase }) => <Phase of={phase} /> },
  {
    title: "Last outcome",
    cell: ({ lastOutcome, failures, conflicts }) => (
      <span class="did">
        {lastOutcome === undefined ? (
          <span class="dim">no attempts yet</span>
        ) : (
          <Outcome of={lastOutcome} />
        )}
        {failures + conflicts === 0 ? null : (
          <span class="dim small nowrap">{consecutiveText(failures, conflicts)}</span>
        )}
      </span>
    ),
  },
  {
    title: "Next attempt",
    look: "right nowrap",
    cell: ({ nextAt }) =>
      nextAt === undefined ? <span class="dim">–</span> : <Time at={nextAt} />,
  },
];

function KeyTable({
  items,
  selection,
}: {
  readonly items: readonly KeyItem[];
  readonly selection: Selection;
}) {
  return (
    <div class="panel">
      <Table
        caption="Objects by name"
        columns={columnsOf(selection)}
        rows={items}
        keyOf={({ key }) => key}
      />
    </div>
  );
}

function consecutiveText(failures: number, conflicts: number): string {
  const counts = [
    ...(failures === 0 ? [] : [plural(failures, "failure")]),
    ...(conflicts === 0 ? [] : [plural(conflicts, "conflict")]),
  ];
  return `${counts.join(" and ")} in a row`;
}

/** The target of a pause or resume action. */
interface Scope {
  readonly controller: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

async function send(path: string, scope: Scope, action: OperatorAction): Promise<void> {
  await call(path, { method: "POST", body: { cluster: cluster.value, ...scope, ...action } });
}

function PauseController({
  controller,
  namespace,
  onDone,
}: {
  readonly controller: string;
  readonly namespace: string | undefined;
  readonly onDone: () => void;
}) {
  const what = namespace === undefined ? controller : `${controller} in ${namespace}`;
  return (
    <ActionButton
      label={`Pause ${what}`}
      danger
      explains="No attempt starts until the pause ends. Running attempts finish and requests stay queued."
      run={async (action) => {
        await send("v1/pauses", { controller, ...defined({ namespace }) }, action);
        onDone();
        return `${what} is paused`;
      }}
    />
  );
}

type Queue = QueueList["items"][number];

/** The tabs with counts. */
const COUNTED: ReadonlySet<KeyPhase | undefined> = new Set([
  undefined,
  "waiting",
  "running",
  "deadLettered",
]);

/** The states of objects, with the counts of the selected controller or of all. */
function PhaseTabs({
  queues,
  controller,
  phase,
}: {
  readonly queues: readonly Queue[] | undefined;
  readonly controller: string | undefined;
  readonly phase: string | undefined;
}) {
  const { cursor: _cursor, phase: _phase, ...params } = Object.fromEntries(query.value);
  const counted = queues?.filter(
    (queue) => controller === undefined || queue.controller === controller,
  );
  // A filter by name or namespace has no counts; other states are found only by reading each object.
  const isWhole = query.value.get("name") === null && query.value.get("namespace") === null;
  const countOf = (of: "waiting" | "active" | "keys" | "deadLettered") =>
    isWhole
      ? counted?.reduce<number | undefined>((sum, { [of]: count }) => {
          return sum === undefined || count === undefined ? undefined : sum + count;
        }, 0)
      : undefined;
  const tab = (title: string, of: KeyPhase | undefined, count?: number) => ({
    title,
    href: href("/objects", { ...params, phase: of }),
    isCurrent: phase === of,
    count,
    isCounting: isWhole && queues === undefined && COUNTED.has(of),
  });
  return (
    <Tabs
      label="State"
      tabs={[
        tab("All", undefined, countOf("keys")),
        tab("Waiting", "waiting", countOf("waiting")),
        tab("Running", "running", countOf("active")),
        tab("Backoff", "backoff"),
        tab("Dead-lettered", "deadLettered", countOf("deadLettered")),
        tab("Paused", "paused"),
        tab("Idle", "idle"),
      ]}
    />
  );
}

function Pauses({
  queues,
  onDone,
}: {
  readonly queues: readonly Queue[];
  readonly onDone: () => void;
}) {
  const items = queues.flatMap(({ controller, pauses }) =>
    pauses.map((pause) => ({ controller, ...pause })),
  );
  if (items.length === 0) return null;
  return (
    <ul class="problems" aria-label="Paused">
      {items.map(({ controller, scope, by, reason, since }) => {
        const parts = scope.kind === "key" ? partsOf(scope.key) : undefined;
        const what =
          parts !== undefined
            ? shortName(parts)
            : scope.kind === "namespace"
              ? `namespace ${scope.namespace}`
              : "all objects";
        const target: Scope = {
          controller,
          ...(scope.kind === "namespace" ? { namespace: scope.namespace } : {}),
          ...(parts === undefined
            ? {}
            : {
                name: parts.name,
                ...defined({ namespace: parts.namespace }),
              }),
        };
        return (
          <li key={`${controller}${JSON.stringify(scope)}`} class="paused">
            <span>
              <Status tone="warn">{`${controller}: ${what} is paused`}</Status>{" "}
              <span class="dim">
                by {by} <Time at={since} />: {reason}
              </span>
            </span>
            <ActionButton
              label="Resume"
              explains={`Pending requests of ${controller} (${what}) run immediately.`}
              run={async (action) => {
                await send("v1/pauses/resume", target, action);
                onDone();
                return `${controller} is resumed`;
              }}
            />
          </li>
        );
      })}
    </ul>
  );
}
