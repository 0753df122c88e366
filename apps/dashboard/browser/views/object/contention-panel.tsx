import type { Contention } from "@konverge/contracts";
import { formatCount, plural } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";

const SHOWN = 5;

/** Other writers of the object and its reconcile loop. */
export function ContentionPanel({ contention }: { readonly contention: Contention }) {
  const { competingWriters, loop } = contention;
  if (competingWriters.length === 0 && loop === undefined) return null;
  const sorted = competingWriters.toSorted((one, other) => other.count - one.count);
  return (
    <section aria-labelledby="contention">
      <h2 id="contention">Other writers</h2>
      {loop === undefined ? null : (
        <div class="note warn">
          <strong>
            <Status tone="warn">Reconcile loop</Status>
          </strong>{" "}
          since <Time at={new Date(loop.sinceMs).toISOString()} />. Attempts are throttled; the next
          starts <Time at={new Date(loop.untilMs).toISOString()} /> or on a user request.
        </div>
      )}
      {sorted.length === 0 ? null : (
        <div class="panel">
          <table class="stack">
            <thead>
              <tr>
                <th scope="col">Field manager</th>
                <th scope="col">Effect</th>
                <th scope="col">Field</th>
                <th scope="col" class="right">
                  Count
                </th>
                <th scope="col" class="right">
                  Last
                </th>
              </tr>
            </thead>
            <tbody>
              {sorted.slice(0, SHOWN).map(({ kind, manager, path, count, lastAt }) => (
                <tr key={`${kind}${manager}${path}`}>
                  <th scope="row" class="strong">
                    {manager}
                  </th>
                  <td data-label="Effect">
                    {kind === "conflict" ? (
                      <Status tone="race">caused a conflict</Status>
                    ) : (
                      <Status tone="warn">lost a field to this controller</Status>
                    )}
                  </td>
                  <td data-label="Field">
                    {path === "" ? <span class="dim">not reported</span> : <code>{path}</code>}
                  </td>
                  <td class="num right" data-label="Count">
                    {formatCount(count)}
                  </td>
                  <td class="right nowrap" data-label="Last">
                    <Time at={lastAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {sorted.length > SHOWN ? (
            <p class="more dim small">
              and {plural(sorted.length - SHOWN, "more pair")} of writer and field
            </p>
          ) : null}
        </div>
      )}
    </section>
  );
}
