import type { AuditEntry, AuditPage } from "@konverge/contracts";
import { AUDIT_ACTIONS } from "@konverge/core";
import { useQuery } from "../api/use-query.ts";
import { apiPath } from "../state/cluster.ts";
import { href, query } from "../state/router.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { ExportButtons } from "../parts/export-buttons.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Clock, Time } from "../parts/time.tsx";

const LIMIT = 100;
const EVERY_MS = 10_000;

/** The changes made through the API and the command line, with author, target and reason. */
export function AuditView() {
  const filters = filtersOf(["by", "action", "controller", "namespace"]);
  const cursor = query.value.get("cursor") ?? undefined;
  const path = apiPath("audit", { ...filters, cursor, limit: String(LIMIT) });
  const { data, trouble, loading } = useQuery<AuditPage>(path, cursor === undefined ? EVERY_MS : 0);
  return (
    <>
      <div class="title-row">
        <h1>Audit log</h1>
        <div class="buttons">
          <ExportButtons
            name="audit"
            pathOf={(next) => apiPath("audit", { ...filters, cursor: next, limit: "1000" })}
          />
        </div>
      </div>
      <Filters>
        <Filter name="by" label="Author" />
        <Filter name="action" label="Action" choices={AUDIT_ACTIONS} />
        <Filter name="controller" label="Controller" />
        <Filter name="namespace" label="Namespace" />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div aria-busy={loading}>
        {data === undefined ? (
          trouble === undefined && <Loading rows={10} />
        ) : data.items.length === 0 && data.next === undefined ? (
          <Empty title={Object.keys(filters).length > 0 ? "No matching changes" : "No changes yet"}>
            <p>Requests and operator actions appear here with their author and reason.</p>
          </Empty>
        ) : (
          <>
            <div class="panel">
              <Table
                caption="Changes, newest first"
                columns={COLUMNS}
                rows={data.items}
                keyOf={({ id }) => id}
              />
            </div>
            <Pager next={data.next} shown={plural(data.items.length, "change")} />
          </>
        )}
      </div>
      <CliLine line={["konverge audit list", ...flagsOf(filters)].join(" ")} />
    </>
  );
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: "Action", look: "nowrap", cell: ({ action }) => <span class="strong">{action}</span> },
  { title: "Target", look: "target", cell: (entry) => <Target entry={entry} /> },
  {
    title: "Author",
    look: "nowrap",
    cell: ({ by, via }) => (
      <>
        {by}
        {via === undefined ? null : <span class="dim small"> {via}</span>}
      </>
    ),
  },
  {
    title: "Reason",
    look: "wide",
    cell: ({ reason }) => reason && <span class="clip">{reason}</span>,
  },
  { title: "Count", look: "num right secondary", cell: ({ count }) => count },
  {
    title: "Time",
    look: "right nowrap",
    cell: ({ at }) => (
      <>
        <Time at={at} />{" "}
        <span class="small secondary">
          <Clock at={at} />
        </span>
      </>
    ),
  },
];

/** Links to the object or run, if the entry names one. */
function Target({ entry }: { readonly entry: AuditEntry }) {
  const { cluster, controller, namespace, name, filter } = entry;
  const run = controller === undefined ? undefined : /^workflow\.(.+)$/.exec(controller)?.[1];
  const place = [cluster, controller, namespace === "_" ? undefined : namespace, name];
  const text = [...place, filter].filter((part) => part !== undefined && part !== "").join(" / ");
  if (cluster === undefined || name === undefined || controller === undefined) {
    return <span>{text === "" ? <span class="dim">installation</span> : text}</span>;
  }
  const to =
    run === undefined
      ? href(
          `/objects/${[cluster, controller, namespace ?? "_", name].map(encodeURIComponent).join("/")}`,
        )
      : href(`/runs/${[run, cluster, name].map(encodeURIComponent).join("/")}`);
  return (
    <a href={to} data-row>
      {text}
    </a>
  );
}
