import type { Activity } from "@konverge/contracts";
import { formatMs } from "../../parts/format.ts";
import { Table, type Column } from "../../parts/table.tsx";

type Causes = NonNullable<Activity["convergence"]>["causes"];
type Cause = Causes[number]["cause"];

const TITLES: Readonly<Record<Cause, string>> = {
  queue: "Queue",
  pause: "Pauses",
  outage: "API server away",
  retry: "Failed attempts",
  contention: "Contention",
  token: "Rate limit",
  lane: "Object lanes",
  handler: "Handler",
};

interface Row {
  readonly cause: Cause;
  readonly ms: number;
  readonly share: number;
  /** Of the time of late changes. */
  readonly lateShare: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "Cause", cell: ({ cause }) => TITLES[cause] },
  { title: "Time", look: "num right nowrap", cell: ({ ms }) => formatMs(ms) },
  { title: "Share", look: "num right nowrap", cell: ({ share }) => percent(share) },
];
const LATE: Column<Row> = {
  title: "Share of late",
  look: "num right nowrap",
  cell: ({ lateShare }) => percent(lateShare),
};

/** The time from changes to success by cause, and how the changes met the objective. */
export function TimeByCause({
  convergence,
  slo,
}: {
  readonly convergence: Activity["convergence"];
  readonly slo: Activity["slo"];
}) {
  const late = new Map(slo?.causes.map(({ cause, share }) => [cause, share]));
  const rows = (convergence?.causes ?? []).map((each) => ({
    ...each,
    lateShare: late.get(each.cause) ?? 0,
  }));
  return (
    <>
      {slo === undefined ? null : <p class="more">{slo.summary}</p>}
      {convergence === undefined ? null : <p class="more">{convergence.summary}</p>}
      {slo === undefined || slo.good + slo.bad === 0 ? null : (
        <p class="more dim small">{percent(slo.budgetUsed)} of the error budget is used.</p>
      )}
      {rows.length === 0 ? null : (
        <Table
          caption="Time from changes to success by cause"
          columns={late.size === 0 ? COLUMNS : [...COLUMNS, LATE]}
          rows={rows}
          keyOf={({ cause }) => cause}
        />
      )}
    </>
  );
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
