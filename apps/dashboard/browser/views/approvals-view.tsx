import { shortName } from "@konverge/core";
import type { Approval, ApprovalList } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { apiPath } from "../state/cluster.ts";
import { approvalHref } from "../state/router.ts";
import { ApprovalState, neededText } from "./approval/approval-state.tsx";
import { summaryText } from "./plan/plan-changes.tsx";

const EVERY_MS = 5_000;

/** The plans that wait for users, oldest first. */
export function ApprovalsView() {
  const filters = filtersOf(["controller", "namespace"]);
  const path = apiPath("approvals", filters);
  const { data, trouble, loading } = useQuery<ApprovalList>(path, EVERY_MS);
  return (
    <>
      <h1>Approvals</h1>
      <p class="lead">
        Plans that users must approve before a controller makes their changes. Open a plan to see
        its changes and to decide.
      </p>
      <Filters>
        <Filter name="controller" label="Controller" />
        <Filter name="namespace" label="Namespace" />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div aria-busy={loading}>
        {data === undefined ? (
          trouble === undefined && <Loading />
        ) : data.items.length === 0 ? (
          <Empty title="No plan waits for an approval">
            <p>
              {Object.keys(filters).length === 0 ? (
                <>
                  Plans appear here if a controller has the option <code>approval</code>.
                </>
              ) : (
                "No matches for these filters."
              )}
            </p>
          </Empty>
        ) : (
          <>
            <div class="panel">
              <Table
                caption="Plans that wait, oldest first"
                columns={COLUMNS}
                rows={data.items}
                keyOf={({ key }) => key}
              />
            </div>
            {data.more === undefined ? null : (
              <p class="dim">and {plural(data.more, "more plan")}; filter to see them</p>
            )}
          </>
        )}
      </div>
      <CliLine line={["konverge approval list", ...flagsOf(filters)].join(" ")} />
    </>
  );
}

const COLUMNS: readonly Column<Approval>[] = [
  {
    title: "Object",
    cell: (approval) => (
      <>
        <a class="strong" href={approvalHref(approval.key)} data-row>
          {shortName(approval)}
        </a>
        <div class="dim small">{approval.controller}</div>
      </>
    ),
  },
  { title: "State", look: "nowrap", cell: ({ state }) => <ApprovalState of={state} /> },
  { title: "Changes", cell: ({ summary }) => summaryText(summary) },
  {
    title: "Requested by",
    cell: ({ requesters }) =>
      requesters.length === 0 ? (
        <span class="dim">changes of objects</span>
      ) : (
        <span class="clip">{requesters.join(", ")}</span>
      ),
  },
  {
    title: "Approvals",
    cell: (approval) => (
      <>
        {neededText(approval)}
        {approval.approvals.length === 0 ? null : (
          <div class="dim small">{approval.approvals.map(({ by }) => by).join(", ")}</div>
        )}
        {approval.rejected === undefined ? null : (
          <div class="dim small">rejected by {approval.rejected.by}</div>
        )}
      </>
    ),
  },
  { title: "Since", look: "right nowrap", cell: ({ since }) => <Time at={since} /> },
];
