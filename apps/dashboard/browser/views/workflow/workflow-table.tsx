import type { OverviewWorkflow } from "@konverge/contracts";
import { viewHref } from "../../state/cluster.ts";
import { formatCount } from "../../parts/format.ts";
import { Status, type Tone } from "../../parts/status.tsx";
import { WorkerCount } from "../../parts/worker-count.tsx";

/** The columns by run status. A tone marks counts above zero. */
const COLUMNS: readonly {
  readonly title: string;
  readonly status: keyof OverviewWorkflow["runs"];
  readonly tone?: Tone;
}[] = [
  { title: "Queued", status: "queued" },
  { title: "Running", status: "running" },
  { title: "Waiting", status: "waiting" },
  { title: "Compensating", status: "compensating", tone: "warn" },
  { title: "Blocked", status: "blocked", tone: "bad" },
  { title: "Failed", status: "failed", tone: "bad" },
  { title: "Done", status: "done" },
];

/** A row per workflow with its runs by status. Each count links to those runs. */
export function WorkflowTable({ rows }: { readonly rows: readonly OverviewWorkflow[] }) {
  return (
    <div class="panel">
      <table class="stack">
        <caption class="hidden">Runs of each workflow</caption>
        <thead>
          <tr>
            <th scope="col">Workflow</th>
            {COLUMNS.map(({ title }) => (
              <th key={title} scope="col" class="right">
                {title}
              </th>
            ))}
            <th scope="col" class="right">
              Workers
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, version, workers, runs }) => (
            <tr key={name}>
              <th scope="row">
                <a class="strong" href={viewHref("/workflows", { workflow: name })} data-row>
                  {name}
                </a>
                <div class="dim small">version {version}</div>
              </th>
              {COLUMNS.map(({ title, status, tone }) => (
                <td key={title} class="num right" data-label={title}>
                  <a href={viewHref("/workflows", { workflow: name, status })}>
                    {tone === undefined || runs[status] === 0 ? (
                      formatCount(runs[status])
                    ) : (
                      <Status tone={tone}>{formatCount(runs[status])}</Status>
                    )}
                  </a>
                </td>
              ))}
              <WorkerCount workers={workers} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
