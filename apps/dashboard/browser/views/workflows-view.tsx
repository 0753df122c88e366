import type { RunList, WorkerList } from "@konverge/contracts";
import { defined, RUN_STATUSES } from "@konverge/core";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useQuery } from "../api/use-query.ts";
import { apiPath, cluster } from "../state/cluster.ts";
import { query, runHref } from "../state/router.ts";
import { defaultCluster } from "../state/session.ts";
import { CliLine, flagsOf, quote } from "../parts/cli-line.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatMs, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { RunStatus } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { BulkActions } from "./workflow/bulk-actions.tsx";
import { StartButton } from "./workflow/start-button.tsx";
import { RunNote } from "./workflow/run-note.tsx";
import { idOf } from "../api/run-id.ts";

const EVERY_MS = 3_000;
const WORKERS_EVERY_MS = 30_000;
const LIMIT = 50;
/** New rows are held back when the page is scrolled further than this. */
const TOP_PX = 120;

type Run = RunList["items"][number];

/** Workflow runs, newest first. New runs are held back while the mouse or the focus is on the list. */
export function WorkflowsView() {
  const filters = filtersOf(["workflow", "status", "search", "label", "by", "key", "error"]);
  const cursor = query.value.get("cursor") ?? undefined;
  const path = apiPath("runs", { ...filters, cursor, limit: String(LIMIT) });
  const { data, trouble, loading } = useQuery<RunList>(path, EVERY_MS);
  const workers = useQuery<WorkerList>(apiPath("workers"), WORKERS_EVERY_MS);
  const list = useRef<HTMLDivElement>(null);
  const { rows, fresh, show } = useHeldBack(path, data?.items, list);
  const met = [
    ...(workers.data?.items ?? []).flatMap((worker) => Object.keys(worker.workflows ?? {})),
    ...(data?.items ?? []).map((run) => run.workflow),
  ];
  const names = [...new Set(met)].toSorted();
  const { workflow } = filters;
  return (
    <>
      <div class="title-row">
        <h1>Workflows</h1>
        <StartButton names={names} chosen={workflow} />
      </div>
      <p class="lead">
        Runs of durable functions. Each step is recorded, so a run resumes after a crash.
      </p>
      <Filters>
        <Filter name="search" label="Search" placeholder="run, key or author" />
        <Filter name="workflow" label="Workflow" choices={names} />
        <Filter name="status" label="Status" choices={RUN_STATUSES} />
        <Filter name="label" label="Labels" placeholder="region=eu,tier=gold" />
        <Filter name="by" label="Started by" />
        <Filter name="key" label="Key" />
        <Filter name="error" label="Error code" />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div ref={list} aria-busy={loading}>
        <div role="status">
          {fresh === 0 ? null : (
            <button type="button" class="fresh" onClick={show}>
              {plural(fresh, "new run")}
            </button>
          )}
        </div>
        {data === undefined ? (
          trouble === undefined && <Loading rows={10} />
        ) : rows.length === 0 && data.next === undefined ? (
          <NoRuns filters={filters} />
        ) : (
          <>
            <RunTable rows={rows} />
            <BulkActions filter={filters} />
            <Pager next={data.next} shown={plural(rows.length, "run")} />
          </>
        )}
      </div>
      <CliLine line={listLine(filters)} />
    </>
  );
}

type Filters = Readonly<Record<string, string>>;

function listLine({ workflow, ...others }: Filters): string {
  const cli = {
    ...others,
    ...(cluster.value === defaultCluster ? {} : { cluster: cluster.value }),
  };
  const name = workflow === undefined ? [] : [quote(workflow)];
  return ["konverge run list", ...name, ...flagsOf(cli)].join(" ");
}

function NoRuns({ filters: { workflow = "WORKFLOW", ...others } }: { readonly filters: Filters }) {
  return Object.keys(others).length > 0 ? (
    <Empty title="No matching runs">
      <p>Search matches any part; the other filters match the whole value.</p>
    </Empty>
  ) : (
    <Empty title="No runs yet">
      <p>Start a run of a registered workflow:</p>
      <CliLine line={`konverge run start ${quote(workflow)} --input '{}'`} />
    </Empty>
  );
}

const COLUMNS: readonly Column<Run>[] = [
  {
    title: "Run",
    cell: ({ id, workflow }) => (
      <>
        <a class="strong" href={runHref(id)} data-row>
          {idOf(id)}
        </a>
        <div class="dim small">{workflow}</div>
      </>
    ),
  },
  { title: "Status", look: "nowrap", cell: ({ status }) => <RunStatus of={status} /> },
  { title: "Details", cell: (run) => <RunNote run={run} /> },
  {
    title: "Duration",
    look: "num right nowrap",
    cell: ({ createdAt, endedAt }) =>
      endedAt === undefined ? null : formatMs(Date.parse(endedAt) - Date.parse(createdAt)),
  },
  {
    title: "Started",
    look: "right nowrap",
    cell: ({ createdAt, by }) => (
      <>
        <Time at={createdAt} />
        {by === undefined ? null : <div class="dim small">by {by}</div>}
      </>
    ),
  },
];

function RunTable({ rows }: { readonly rows: readonly Run[] }) {
  return (
    <div class="panel">
      <Table
        caption="Runs, newest first"
        look="stack runs"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ id }) => id}
      />
    </div>
  );
}

/** Adds new rows at the top, except while the user reads the list. */
function useHeldBack(
  path: string,
  items: readonly Run[] | undefined,
  list: RefObject<HTMLDivElement | null>,
): { readonly rows: readonly Run[]; readonly fresh: number; readonly show: () => void } {
  const [shown, setShown] = useState<{ readonly path: string; readonly newest?: string }>({ path });
  const newest = items?.[0]?.id;
  const show = () => setShown({ path, ...defined({ newest }) });
  useEffect(() => {
    if (newest === undefined || shown.newest === newest) return;
    const isRead =
      window.scrollY > TOP_PX ||
      list.current?.matches(":hover") === true ||
      list.current?.contains(document.activeElement) === true;
    if (shown.path !== path || shown.newest === undefined || !isRead) show();
  }, [path, items]);
  const all = items ?? [];
  const fresh =
    shown.path === path
      ? Math.max(
          0,
          all.findIndex(({ id }) => id === shown.newest),
        )
      : 0;
  return { rows: all.slice(fresh), fresh, show };
}
