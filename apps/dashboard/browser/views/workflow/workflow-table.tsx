import type { OverviewWorkflow } from "@konverge/contracts";
import { viewHref } from "../../state/cluster.ts";
import { formatCount } from "../../parts/format.ts";
import { Status, type Tone } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { WorkerCount } from "../../parts/worker-count.tsx";

/** The columns by run status. A tone marks counts above zero. */
const STATUSES: readonly {
  readonly title: string;
  readonly status: keyof OverviewWorkflow["runs"];
  readonly tone?: Tone;
}[] = [
  { title: "Queued", status: "queued" },
  { title: "Running", status: "running" },
  { title: "Waiting", status: "waiting" },
  { title: "Compensating", status: "compensating", tone: "warn" },
  { title: "Paused", status: "paused", tone: "warn" },
  { title: "Blocked", status: "blocked", tone: "bad" },
  { title: "Failed", status: "failed", tone: "bad" },
  { title: "Done", status: "done" },
];

const COLUMNS: readonly Column<OverviewWorkflow>[] = [
  {
    title: "Workflow",
    cell: ({ name, version }) => (
      <>
        <a class="strong" href={viewHref("/workflows", { workflow: name })} data-row>
          {name}
        </a>
        <div class="dim small">version {version}</div>
      </>
    ),
  },
  ...STATUSES.map(({ title, status, tone }): Column<OverviewWorkflow> => ({
    title,
    look: "num right",
    cell: ({ name, runs }) => (
      <a href={viewHref("/workflows", { workflow: name, status })}>
        {tone === undefined || runs[status] === 0 ? (
          <span class={runs[status] === 0 ? "zero" : undefined}>{formatCount(runs[status])}</span>
        ) : (
          <Status tone={tone}>{formatCount(runs[status])}</Status>
        )}
      </a>
    ),
  })),
  { title: "Workers", look: "num right", cell: ({ workers }) => <WorkerCount workers={workers} /> },
];

/** A row per workflow with its runs by status. Each count links to those runs. */
export function WorkflowTable({ rows }: { readonly rows: readonly OverviewWorkflow[] }) {
  return (
    <div class="panel">
      <Table
        caption="Runs of each workflow"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ name }) => name}
      />
    </div>
  );
}
