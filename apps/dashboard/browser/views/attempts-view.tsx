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

/** Every attempt of the cluster, by what it can be found by. */
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
          Look again
        </button>
      </div>
      <Filters>
        <Filter name="name" label="Name" placeholder="any part" />
        <Filter name="namespace" label="Namespace" />
        <Filter name="controller" label="Controller" />
        <Filter name="outcome" label="Outcome" choices={outcomeNames} />
        <Filter name="manager" label="Lost to" placeholder="field manager" />
        <Filter name="error" label="Error" placeholder="code or reason" />
        <Filter name="hint" label="Hint" />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div aria-busy={loading}>
        {data === undefined ? (
          trouble === undefined && <Loading rows={10} />
        ) : data.items.length === 0 && data.next === undefined ? (
          <NoRuns filtered={flags.length > 0} />
        ) : (
          <>
            <RunTable rows={data.items} />
            <Pager next={data.next} shown={plural(data.items.length, "attempt")} />
          </>
        )}
      </div>
      <CliLine line={["konverge attempt list", ...flags].join(" ")} />
    </>
  );
}

function NoRuns({ filtered }: { readonly filtered: boolean }) {
  return filtered ? (
    <Empty title="No attempt matches">
      <p>Names match by any part; the other filters by the whole word.</p>
    </Empty>
  ) : (
    <Empty title="Nothing has run yet">
      <p>Every attempt of every controller appears here. Ask for one:</p>
      <CliLine line="konverge reconcile enqueue CONTROLLER NAME -n NAMESPACE" />
    </Empty>
  );
}

function RunTable({ rows }: { readonly rows: readonly AttemptSummary[] }) {
  return (
    <div class="panel">
      <table class="stack">
        <caption class="hidden">Attempts, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Object</th>
            <th scope="col">Outcome</th>
            <th scope="col">What happened</th>
            <th scope="col" class="right">
              Took
            </th>
            <th scope="col" class="right">
              Calls
            </th>
            <th scope="col" class="right">
              Began
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
              <td data-label="What happened">
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
              <td data-label="Took" class="num right nowrap">
                {formatMs(row.durationMs)}
              </td>
              <td data-label="Calls" class="num right">
                {row.calls}
              </td>
              <td data-label="Began" class="right nowrap">
                <Time at={row.startedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
