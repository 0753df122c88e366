import type { Contention } from "@konverge/contracts";
import { formatCount, plural } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";

const SHOWN = 5;

/** Who fights over the object: whose writes won against ours, and whose fields we took. */
export function ContentionPanel({ contention }: { readonly contention: Contention }) {
  const { competingWriters, loop } = contention;
  if (competingWriters.length === 0 && loop === undefined) return null;
  const sorted = competingWriters.toSorted((one, other) => other.count - one.count);
  return (
    <section aria-labelledby="contention">
      <h2 id="contention">Who else writes here</h2>
      {loop === undefined ? null : (
        <div class="note warn">
          <strong>
            <Status tone="warn">Runs in circles</Status>
          </strong>{" "}
          since <Time at={new Date(loop.sinceMs).toISOString()} />. Its starts are slowed down; the
          next is <Time at={new Date(loop.untilMs).toISOString()} />, unless a person asks.
        </div>
      )}
      {sorted.length === 0 ? null : (
        <div class="panel">
          <table class="stack">
            <thead>
              <tr>
                <th scope="col">Field manager</th>
                <th scope="col">What happened</th>
                <th scope="col">Field</th>
                <th scope="col" class="right">
                  Times
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
                  <td data-label="What happened">
                    {kind === "conflict" ? (
                      <Status tone="race">won against us</Status>
                    ) : (
                      <Status tone="warn">we took its field</Status>
                    )}
                  </td>
                  <td data-label="Field">
                    {path === "" ? <span class="dim">not told</span> : <code>{path}</code>}
                  </td>
                  <td class="num right" data-label="Times">
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
              and {plural(sorted.length - SHOWN, "more pair")} of manager and field
            </p>
          ) : null}
        </div>
      )}
    </section>
  );
}
