import type { AttemptPage, AttemptSummary } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { shortName } from "../api/object-key.ts";
import { apiPath } from "../state/cluster.ts";
import { objectHref, query } from "../state/router.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatMs, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { Outcome, outcomeNames, Status } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

const FILTERS = [
  "name",
  "namespace",
  "controller",
  "kind",
  "outcome",
  "error",
  "manager",
  "hint",
] as const;
const LIMIT = 50;

/** The attempts of the cluster, with filters. */
export function AttemptsView() {
  const filters = filtersOf(FILTERS);
  const cursor = query.value.get("cursor") ?? undefined;
  const { data, trouble, loading, reload } = useQuery<AttemptPage>(
    apiPath("attempts", { ...filters, cursor, limit: String(LIMIT) }),
  );
  const flags = flagsOf(filters);
  return (
    <>
      <div class="title-row">
        <h1>Attempts</h1>
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </div>
      <Filters>
        <Filter name="name" label="Name" placeholder="any part" />
        <Filter name="namespace" label="Namespace" />
        <Filter name="controller" label="Controller" />
        <Filter name="outcome" label="Outcome" choices={outcomeNames} />
        <Filter name="manager" label="Competing writer" placeholder="field manager" />
        <Filter name="error" label="Error" placeholder="code or reason" />
        <Filter name="hint" label="Hint" />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div aria-busy={loading}>
        {data === undefined ? (
          trouble === undefined && <Loading rows={10} />
        ) : data.items.length === 0 && data.next === undefined ? (
          <NoAttempts filtered={flags.length > 0} />
        ) : (
          <>
            <AttemptTable rows={data.items} />
            <Pager next={data.next} shown={plural(data.items.length, "attempt")} />
          </>
        )}
      </div>
      <CliLine line={["konverge attempt list", ...flags].join(" ")} />
    </>
  );
}

function NoAttempts({ filtered }: { readonly filtered: boolean }) {
  return filtered ? (
    <Empty title="No matching attempts">
      <p>Name matches any part; the other filters match the whole value.</p>
    </Empty>
  ) : (
    <Empty title="No attempts yet">
      <p>Attempts of all controllers appear here. Enqueue an object:</p>
      <CliLine line="konverge reconcile enqueue CONTROLLER NAME -n NAMESPACE" />
    </Empty>
  );
}

const COLUMNS: readonly Column<AttemptSummary>[] = [
  {
    title: "Object",
    cell: (row) => (
      <>
        <a class="strong" href={objectHref(row.key)} data-row>
          {shortName(row)}
        </a>
        <div class="dim small">{row.controller}</div>
      </>
    ),
  },
  { title: "Outcome", cell: ({ outcome }) => <Outcome of={outcome} /> },
  { title: "Details", cell: (row) => <Details row={row} /> },
  { title: "Duration", look: "num right nowrap", cell: ({ durationMs }) => formatMs(durationMs) },
  { title: "Calls", look: "num right", cell: ({ calls }) => calls },
  { title: "Started", look: "right nowrap", cell: ({ startedAt }) => <Time at={startedAt} /> },
];

function AttemptTable({ rows }: { readonly rows: readonly AttemptSummary[] }) {
  return (
    <div class="panel">
      <Table
        caption="Attempts, newest first"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ id }) => id}
      />
    </div>
  );
}

function Details({
  row: { conflicts, managers, writes, errorCode, hints },
}: {
  readonly row: AttemptSummary;
}) {
  return (
    <span class="did">
      {conflicts === 0 ? null : (
        <Status tone="race">
          {`${plural(conflicts, "conflict")}${managers.length === 0 ? "" : ` with ${managers.join(", ")}`}`}
        </Status>
      )}
      {writes === 0 ? null : <span>{plural(writes, "write")}</span>}
      {errorCode === undefined ? null : <code class="bad">{errorCode}</code>}
      {hints.map((hint) => (
        <span class="tag" key={hint}>
          {hint}
        </span>
      ))}
    </span>
  );
}
