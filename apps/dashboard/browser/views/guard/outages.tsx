import type { GuardView } from "@konverge/contracts";
import { formatMs, plural } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Clock, Time } from "../../parts/time.tsx";
import { groupOutages, type Outage } from "./group-outages.ts";

type Transition = GuardView["transitions"][number];

const SHOWN = 12;

const COLUMNS: readonly Column<Outage>[] = [
  {
    title: "Opened",
    look: "nowrap",
    cell: ({ opened }) =>
      opened === undefined ? (
        <span class="dim">before the stored transitions</span>
      ) : (
        <Time at={isoOf(opened)} />
      ),
  },
  {
    title: "Lasted",
    look: "num nowrap",
    cell: ({ opened, closed }) => {
      if (closed === undefined) return <Status tone="bad">continues</Status>;
      return opened === undefined ? "" : formatMs(closed.atMs - opened.atMs);
    },
  },
  {
    title: "Opened by",
    cell: ({ opened }) =>
      opened === undefined ? null : (
        <>
          {reasonOf(opened)}
          <div class="dim small num">{evidenceOf(opened)}</div>
        </>
      ),
  },
  { title: "Failed probes", look: "num right", cell: ({ failedProbes }) => failedProbes },
  {
    title: "Ended by",
    cell: ({ closed }) => (closed === undefined ? <span class="dim">–</span> : reasonOf(closed)),
  },
  { title: "Transitions", cell: ({ transitions }) => <Transitions of={transitions} /> },
];

/** A row for each time that the breaker was not closed. */
export function Outages({ transitions }: { readonly transitions: readonly Transition[] }) {
  const outages = groupOutages(transitions);
  if (outages.length === 0) return <p class="more dim">The breaker has not opened yet</p>;
  return (
    <>
      <Table
        caption="Breaker history"
        columns={COLUMNS}
        rows={outages.slice(0, SHOWN)}
        keyOf={({ transitions: [first] }) => first?.generation ?? 0}
      />
      {outages.length > SHOWN ? (
        <p class="more dim small">and {outages.length - SHOWN} earlier</p>
      ) : null}
    </>
  );
}

function Transitions({ of }: { readonly of: readonly Transition[] }) {
  return (
    <details>
      <summary>{of.length}</summary>
      <ul>
        {of.map((transition) => (
          <li key={transition.generation}>
            <Clock at={isoOf(transition)} /> {transition.to}: {reasonOf(transition)}
          </li>
        ))}
      </ul>
    </details>
  );
}

const isoOf = ({ atMs }: Transition) => new Date(atMs).toISOString();

const REASONS: Readonly<Record<string, string>> = {
  consecutive: "consecutive failures",
  failedShare: "failure rate too high",
  slow: "too many slow calls",
  strained: "sustained throttling by the API server",
  timer: "open interval elapsed",
  operatorAction: "operator action",
};

function reasonOf({ by, reason, to, operatorReason }: Transition): string {
  if (by !== undefined) return `${by}: ${operatorReason ?? ""}`;
  if (reason === "probe") return to === "closed" ? "probe succeeded" : "probe failed";
  return REASONS[reason] ?? reason;
}

function evidenceOf({
  calls,
  failed,
  consecutive,
  failingWorkers,
  liveWorkers,
  worker,
}: Transition): string {
  return [
    calls === undefined
      ? ""
      : `${Math.round(failed ?? 0)} of ${plural(Math.round(calls), "call")} failed`,
    consecutive === undefined ? "" : `${consecutive} consecutive`,
    failingWorkers === undefined
      ? ""
      : `${failingWorkers} of ${plural(liveWorkers ?? 0, "worker")}`,
    worker === undefined ? "" : `reported by ${worker}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}
