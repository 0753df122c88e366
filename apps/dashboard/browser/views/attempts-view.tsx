import { shortName } from "@konverge/core";
import type { AttemptPage, AttemptSummary, Overview } from "@konverge/contracts";
import { HINTS } from "@konverge/records";
import { useRef } from "preact/hooks";
import { useQuery } from "../api/use-query.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { objectHref, query, setQuery } from "../state/router.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { ErrorCode } from "../parts/error-code.tsx";
import { ExportButtons } from "../parts/export-buttons.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatInstant, formatMs, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { SelectBox, SelectionBar, useSelection, type Selection } from "../parts/selection.tsx";
import { Outcome, outcomeNames, Status } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { now, Time } from "../parts/time.tsx";
import { useHeldBack } from "../parts/use-held-back.ts";
import { AttemptHistogram } from "./attempts/attempt-histogram.tsx";

const FILTERS = [
  "name",
  "namespace",
  "controller",
  "kind",
  "outcome",
  "error",
  "manager",
  "hint",
  "since",
  "until",
] as const;
const LIMIT = 50;
/** Rows per request of an export. */
const EXPORT_LIMIT = 200;
const EVERY_MS = 5_000;
const COUNTS_EVERY_MS = 15_000;
const NOT_OF_THE_PAGE = { isPartOfPage: false };
const HINT_CODES = Object.keys(HINTS);
/** Ages of the oldest attempt, as in the CLI. */
const RANGES: Readonly<Record<string, number>> = {
  "15m": 900_000,
  "1h": 3_600_000,
  "6h": 21_600_000,
  "24h": 86_400_000,
};

/** The attempts of the cluster, with filters. New ones are added while the first page is shown. */
export function AttemptsView() {
  const filters = filtersOf(FILTERS);
  const range = query.value.get("range") ?? "";
  const cursor = query.value.get("cursor") ?? undefined;
  const wanted = { ...filters, ...sinceOf(range) };
  const isLive = cursor === undefined && filters["until"] === undefined;
  const path = apiPath("attempts", { ...wanted, cursor, limit: String(LIMIT) });
  const { data, trouble, loading } = useQuery<AttemptPage>(path, isLive ? EVERY_MS : 0);
  const overview = useQuery<Overview>(apiPath("overview"), COUNTS_EVERY_MS, NOT_OF_THE_PAGE);
  const list = useRef<HTMLDivElement>(null);
  const selection = useSelection();
  const { rows, fresh, show } = useHeldBack(path, data?.items, list);
  const flags = flagsOf({ ...filters, ...(range === "" ? {} : { since: range }) });
  const controllers = overview.data?.controllers;
  const pathOf = (next: string | undefined) =>
    apiPath("attempts", { ...wanted, cursor: next, limit: String(EXPORT_LIMIT) });
  return (
    <>
      <div class="title-row">
        <h1>Attempts</h1>
        <div class="buttons">
          <ExportButtons name="attempts" pathOf={pathOf} />
        </div>
      </div>
      <AttemptHistogram
        rows={controllers}
        endMs={Date.parse(overview.data?.at ?? new Date(now.value).toISOString())}
        controller={filters["controller"]}
      />
      <Filters>
        <Filter name="name" label="Name" placeholder="any part" />
        <Filter name="namespace" label="Namespace" />
        <Filter
          name="controller"
          label="Controller"
          choices={(controllers ?? []).map(({ name }) => name)}
        />
        <Filter name="outcome" label="Outcome" choices={outcomeNames} />
        <Filter name="manager" label="Competing writer" placeholder="field manager" />
        <Filter name="error" label="Error" placeholder="code or reason" />
        <Filter name="hint" label="Hint" choices={HINT_CODES} />
        <RangeFilter range={range} since={filters["since"]} until={filters["until"]} />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div ref={list} aria-busy={loading}>
        <div role="status">
          {fresh === 0 ? null : (
            <button type="button" class="fresh" onClick={show}>
              {plural(fresh, "new attempt")}
            </button>
          )}
        </div>
        {data === undefined ? (
          trouble === undefined && <Loading rows={10} />
        ) : rows.length === 0 && data.next === undefined ? (
          <NoAttempts filtered={flags.length > 0} />
        ) : (
          <>
            <SelectionBar
              selection={selection}
              shown={[...new Set(rows.map(({ key }) => key))]}
              actions={["reconcile", "pause"]}
              onDone={() => undefined}
            />
            <AttemptTable rows={rows} selection={selection} />
            <Pager next={data.next} shown={plural(rows.length, "attempt")} />
          </>
        )}
      </div>
      <CliLine line={["konverge attempt list", ...flags].join(" ")} />
    </>
  );
}

/** Rounded, so that the list is not a new one in each turn. */
function sinceOf(range: string): { readonly since?: string } {
  const ageMs = RANGES[range];
  if (ageMs === undefined) return {};
  const minuteMs = Math.floor(now.value / 60_000) * 60_000;
  return { since: new Date(minuteMs - ageMs).toISOString() };
}

/** The time of the attempts: an age, or a range chosen in the histogram. */
function RangeFilter({
  range,
  since,
  until,
}: {
  readonly range: string;
  readonly since: string | undefined;
  readonly until: string | undefined;
}) {
  const isFixed = since !== undefined || until !== undefined;
  return (
    <label>
      Time
      <select
        value={isFixed ? "fixed" : range}
        onChange={({ currentTarget }) =>
          setQuery({
            range: currentTarget.value,
            since: undefined,
            until: undefined,
            cursor: undefined,
          })
        }
      >
        <option value="">any</option>
        {Object.keys(RANGES).map((each) => (
          <option key={each} value={each}>
            last {each}
          </option>
        ))}
        {isFixed ? (
          <option value="fixed">
            {since === undefined ? "" : formatInstant(since).slice(0, 16)} to{" "}
            {until === undefined ? "now" : formatInstant(until).slice(11, 16)}
          </option>
        ) : null}
      </select>
    </label>
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

const columnsOf = (selection: Selection): readonly Column<AttemptSummary>[] => [
  {
    title: "Object",
    cell: (row) => (
      <>
        <SelectBox objectKey={row.key} selection={selection} />
        <a class="strong" href={attemptHref(row)} data-row>
          {shortName(row)}
        </a>
        <div class="dim small">{row.controller}</div>
      </>
    ),
  },
  { title: "Outcome", look: "nowrap", cell: ({ outcome }) => <Outcome of={outcome} /> },
  { title: "Details", look: "wide", cell: (row) => <Details row={row} /> },
  { title: "Duration", look: "num right nowrap", cell: ({ durationMs }) => formatMs(durationMs) },
  { title: "Calls", look: "num right secondary", cell: ({ calls }) => calls },
  {
    title: "Ended",
    look: "right nowrap",
    cell: ({ startedAt, durationMs }) => (
      <Time at={new Date(Date.parse(startedAt) + durationMs).toISOString()} />
    ),
  },
];

/** Opens the attempt on the page of its object, which has the last 50. */
function attemptHref({ key, id }: AttemptSummary): string {
  return `${objectHref(key)}?attempt=${id.slice(id.lastIndexOf("#") + 1)}`;
}

function AttemptTable({
  rows,
  selection,
}: {
  readonly rows: readonly AttemptSummary[];
  readonly selection: Selection;
}) {
  return (
    <div class="panel">
      <Table
        caption="Attempts, newest first"
        columns={columnsOf(selection)}
        rows={rows}
        keyOf={({ id }) => id}
      />
    </div>
  );
}

function Details({
  row: { conflicts, managers, writes, errorCode, errorMessage, hints },
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
      {writes === 0 ? null : <span class="nowrap">{plural(writes, "write")}</span>}
      {errorCode === undefined ? null : (
        <span class="bad clip" title={errorMessage}>
          {errorMessage === undefined ? <code>{errorCode}</code> : <ErrorCode code={errorCode} />}
          {errorMessage}
        </span>
      )}
      {hints.map((hint) => (
        <a class="tag" key={hint} href={viewHref(`/hints/${hint}`)}>
          {hint}
        </a>
      ))}
    </span>
  );
}
