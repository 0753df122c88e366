import type { Contention } from "@konverge/contracts";
import { formatCount, plural } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { now, Time } from "../../parts/time.tsx";

const SHOWN = 5;

const COLUMNS: readonly Column<Contention["competingWriters"][number]>[] = [
  { title: "Field manager", look: "strong", cell: ({ manager }) => manager },
  {
    title: "Effect",
    cell: ({ kind }) =>
      kind === "conflict" ? (
        <Status tone="race">caused a conflict</Status>
      ) : (
        <Status tone="warn">lost a field to this controller</Status>
      ),
  },
  {
    title: "Field",
    cell: ({ path }) => (path === "" ? <span class="dim">not reported</span> : <code>{path}</code>),
  },
  { title: "Count", look: "num right", cell: ({ count }) => formatCount(count) },
  { title: "Last", look: "right nowrap", cell: ({ lastAt }) => <Time at={lastAt} /> },
];

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
          since <Time at={new Date(loop.sinceMs).toISOString()} />.{" "}
          {loop.protection === "report" ? (
            "Attempts are not throttled."
          ) : loop.untilMs > now.value ? (
            <>
              Attempts are throttled; the next starts{" "}
              <Time at={new Date(loop.untilMs).toISOString()} /> or on a user request.
            </>
          ) : (
            "Attempts are throttled; the next starts with the next event."
          )}
        </div>
      )}
      {sorted.length === 0 ? null : (
        <div class="panel gap">
          <Table
            columns={COLUMNS}
            rows={sorted.slice(0, SHOWN)}
            keyOf={({ kind, manager, path }) => `${kind}${manager}${path}`}
          />
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
