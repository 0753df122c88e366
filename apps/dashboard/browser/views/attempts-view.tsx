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

function AttemptTable({ rows }: { readonly rows: readonly AttemptSummary[] }) {
  return (
    <div class="panel">
      <table class="stack">
        <caption class="hidden">Attempts, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Object</th>
            <th scope="col">Outcome</th>
            <th scope="col">Details</th>
            <th scope="col" class="right">
              Duration
            </th>
            <th scope="col" class="right">
              Calls
            </th>
            <th scope="col" class="right">
              Started
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                <a class="strong" href={objectHref(row.key)} data-row>
                  {shortName(row)}
                </a>
                <div class="dim small">{row.controller}</div>
              </th>
              <td data-label="Outcome">
                <Outcome of={row.outcome} />
              </td>
              <td data-label="Details">
                <span class="did">
                  {row.conflicts === 0 ? null : (
                    <Status tone="race">
                      {`${plural(row.conflicts, "conflict")}${row.managers.length === 0 ? "" : ` with ${row.managers.join(", ")}`}`}
                    </Status>
                  )}
                  {row.writes === 0 ? null : <span>{plural(row.writes, "write")}</span>}
                  {row.errorCode === undefined ? null : <code class="bad">{row.errorCode}</code>}
                  {row.hints.map((hint) => (
                    <span class="tag" key={hint}>
                      {hint}
                    </span>
                  ))}
                </span>
              </td>
              <td data-label="Duration" class="num right nowrap">
                {formatMs(row.durationMs)}
              </td>
              <td data-label="Calls" class="num right">
                {row.calls}
              </td>
              <td data-label="Started" class="right nowrap">
                <Time at={row.startedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
