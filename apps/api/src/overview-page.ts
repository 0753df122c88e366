import type { GuardView } from "@konverge/contracts";
import type { AnnouncedController, AnnouncedWorker } from "@konverge/queue";
import { html } from "hono/html";
import { guardTable } from "./guard-table.ts";
import { layout, type Html } from "./page-layout.ts";

export interface Overview {
  readonly controllers: readonly (AnnouncedController & {
    readonly waiting: number;
    readonly active: number;
  })[];
  readonly workers: readonly AnnouncedWorker[];
  readonly guards: readonly GuardView[];
}

/** Which controllers there are, who runs them, and how the API servers are protected. */
export function renderOverview({ controllers, workers, guards }: Overview): Html {
  return layout(
    "Overview",
    html`<h1>Controllers</h1>
      ${
        controllers.length === 0
          ? html`<p>
              No worker has announced a controller yet. Start one:
              <code>konverge worker --config konverge.config.ts</code>
            </p>`
          : html`<table>
              <thead>
                <tr>
                  <th scope="col">Controller</th>
                  <th scope="col">Reconciles</th>
                  <th scope="col">Waiting</th>
                  <th scope="col">Running</th>
                </tr>
              </thead>
              <tbody>
                ${controllers.map(
                  ({ name, kind, group, version, waiting, active }) =>
                    html`<tr>
                      <td>${name}</td>
                      <td>${kind} <span class="dim">${group}/${version}</span></td>
                      <td>${waiting}</td>
                      <td>${active}</td>
                    </tr>`,
                )}
              </tbody>
            </table>`
      }
      <p class="dim">
        An object's history is at <code>/o/cluster/controller/namespace/name</code>; without a
        namespace write <code>_</code>.
      </p>
      <h2>Guards</h2>
      ${guardTable(guards)}
      <h2>Workers</h2>
      ${
        workers.length === 0
          ? html`<p class="bad">No worker is running.</p>`
          : html`<ul>
              ${workers.map(({ workerId, role, controllers: runs, startedAt }) => html`<li>${workerId} (${role}): ${runs.join(", ")} <span class="dim">since ${startedAt}</span></li>`)}
            </ul>`
      }`,
  );
}
