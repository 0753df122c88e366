import type { Overview, RunList } from "@konverge/contracts";
import { RUN_STATUSES, type RunStatus as Status } from "@konverge/core";
import { useRef } from "preact/hooks";
import { useQuery } from "../api/use-query.ts";
import { apiPath, cluster } from "../state/cluster.ts";
import { href, query, runHref, setQuery } from "../state/router.ts";
import { defaultCluster } from "../state/session.ts";
import { CliLine, flagsOf, quote } from "../parts/cli-line.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatMs, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { RunStatus } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { useHeldBack } from "../parts/use-held-back.ts";
import { now, Time } from "../parts/time.tsx";
import { BulkActions } from "./workflow/bulk-actions.tsx";
import { StartButton } from "./workflow/start-button.tsx";
import { RunNote } from "./workflow/run-note.tsx";
import { idOf } from "../api/run-id.ts";

const EVERY_MS = 3_000;
const COUNTS_EVERY_MS = 15_000;
const NOT_OF_THE_PAGE = { isPartOfPage: false };
const LIMIT = 50;
type Run = RunList["items"][number];

/** Workflow runs, newest first. New runs are held back while the mouse or the focus is on the list. */
export function WorkflowsView() {
  const chosen = filtersOf(NAMES);
  const isAll = query.value.get("all") === "true";
  // A list without filters has no children: they would stand between their parents.
  const isPlain = Object.keys(chosen).length === 0;
  const filters: Filters = isPlain && !isAll ? { parent: "none" } : chosen;
  const cursor = query.value.get("cursor") ?? undefined;
  const path = apiPath("runs", { ...filters, cursor, limit: String(LIMIT) });
  const { data, trouble, loading } = useQuery<RunList>(path, EVERY_MS);
  const overview = useQuery<Overview>(apiPath("overview"), COUNTS_EVERY_MS, NOT_OF_THE_PAGE);
  const list = useRef<HTMLDivElement>(null);
  const { rows, fresh, show } = useHeldBack(path, data?.items, list);
  const met = [
    ...(overview.data?.workflows ?? []).map(({ name }) => name),
    ...(data?.items ?? []).map((run) => run.workflow),
  ];
  const names = [...new Set(met)].toSorted();
  const { workflow } = chosen;
  return (
    <>
      <div class="title-row">
        <h1>Workflows</h1>
        <StartButton names={names} chosen={workflow} />
      </div>
      <p class="lead">
        Runs of durable functions. Each step is recorded, so a run resumes after a crash.
      </p>
      <StatusTabs
        workflows={overview.data?.workflows}
        workflow={workflow}
        status={chosen["status"]}
      />
      <Filters>
        <Filter name="search" label="Search" placeholder="any part" />
        <Filter name="workflow" label="Workflow" choices={names} />
        <Filter name="label" label="Labels" placeholder="region=eu" />
        <Filter name="by" label="Started by" />
        <Filter name="key" label="Key" />
        <Filter name="error" label="Error code" />
        {isPlain || chosen["parent"] !== undefined ? (
          <ChildrenSwitch parent={chosen["parent"]} isAll={isAll} />
        ) : null}
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
          <NoRuns filters={chosen} />
        ) : (
          <>
            <RunTable rows={rows} />
            <BulkActions filter={chosen} />
            <Pager next={data.next} shown={plural(rows.length, "run")} />
          </>
        )}
      </div>
      <CliLine line={listLine(filters)} />
    </>
  );
}

const NAMES = ["workflow", "status", "search", "label", "by", "key", "error", "parent"] as const;

/** The tabs, in the order in which a user looks at them. */
const TAB_STATUSES: readonly Status[] = [
  "running",
  "waiting",
  "blocked",
  "failed",
  "compensating",
  "paused",
  "queued",
  "done",
  "cancelled",
];

/** The number of runs in each status, children included. Each tab filters by its status. */
function StatusTabs({
  workflows,
  workflow,
  status,
}: {
  readonly workflows: Overview["workflows"] | undefined;
  readonly workflow: string | undefined;
  readonly status: string | undefined;
}) {
  const { cursor: _cursor, status: _status, ...params } = Object.fromEntries(query.value);
  const counted = workflows?.filter(({ name }) => workflow === undefined || name === workflow);
  const countOf = (of: Status) => counted?.reduce((sum, { runs }) => sum + (runs[of] ?? 0), 0);
  const tab = (title: string, of: Status | undefined) => ({
    title,
    href: href("/workflows", { ...params, status: of }),
    isCurrent: status === of,
    isCounting: true,
    count:
      of === undefined
        ? counted && RUN_STATUSES.reduce((sum, each) => sum + (countOf(each) ?? 0), 0)
        : countOf(of),
  });
  const title = (of: Status) => `${of.slice(0, 1).toUpperCase()}${of.slice(1)}`;
  return (
    <Tabs
      label="Status"
      tabs={[tab("All", undefined), ...TAB_STATUSES.map((of) => tab(title(of), of))]}
    />
  );
}

/** Shows children in the list, or ends the filter by one parent. */
function ChildrenSwitch({
  parent,
  isAll,
}: {
  readonly parent: string | undefined;
  readonly isAll: boolean;
}) {
  if (parent !== undefined) {
    return (
      <label>
        Children of
        <button type="button" onClick={() => setQuery({ parent: undefined, cursor: undefined })}>
          {idOf(parent)} ×
        </button>
      </label>
    );
  }
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isAll}
        onChange={({ currentTarget }) =>
          setQuery({ all: currentTarget.checked ? "true" : undefined, cursor: undefined })
        }
      />
      Show children
    </label>
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
    cell: ({ id, workflow, parent }) => (
      <>
        {parent === undefined ? null : (
          <>
            <a class="dim" href={runHref(parent)}>
              {idOf(parent)}
            </a>
            <span class="dim"> › </span>
          </>
        )}
        <a class="strong" href={runHref(id)} data-row>
          {idOf(id)}
        </a>
        <div class="dim small">{workflow}</div>
      </>
    ),
  },
  { title: "Status", look: "nowrap", cell: ({ status }) => <RunStatus of={status} /> },
  { title: "Details", look: "wide", cell: (run) => <RunNote run={run} /> },
  {
    title: "Duration",
    look: "num right nowrap",
    cell: ({ createdAt, endedAt }) => (
      <span class={endedAt === undefined ? "dim" : undefined}>
        {formatMs(
          Math.max(
            0,
            (endedAt === undefined ? now.value : Date.parse(endedAt)) - Date.parse(createdAt),
          ),
        )}
        {endedAt === undefined ? "+" : ""}
      </span>
    ),
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
