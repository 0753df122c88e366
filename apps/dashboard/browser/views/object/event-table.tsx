import type { LiveObject } from "@konverge/contracts";
import { Empty, Loading } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import type { FoundObject } from "./live-cards.tsx";

type Event = FoundObject["events"][number];

const COLUMNS: readonly Column<Event>[] = [
  {
    title: "Reason",
    cell: ({ type, reason }) => (
      <Status tone={type === "Warning" ? "warn" : "idle"}>{reason}</Status>
    ),
  },
  { title: "Message", cell: ({ message }) => message },
  { title: "From", cell: ({ source }) => <span class="dim">{source}</span> },
  { title: "Count", look: "num right", cell: ({ count }) => count },
  {
    title: "Last",
    look: "right nowrap",
    cell: ({ lastAt }) => (lastAt === undefined ? null : <Time at={lastAt} />),
  },
];

/** The Kubernetes events about the object. */
export function EventTable({ live }: { readonly live: LiveObject | undefined }) {
  if (live === undefined) return <Loading />;
  if (live.kind === "unavailable") {
    return (
      <Empty title="Events cannot be read">
        <p>{live.message}.</p>
      </Empty>
    );
  }
  const { events, eventsError } =
    live.kind === "found" ? live : { events: [], eventsError: undefined };
  return (
    <>
      {eventsError === undefined ? null : (
        <p class="note warn" role="alert">
          {eventsError}
        </p>
      )}
      {events.length === 0 ? (
        <Empty title="No events">
          <p>Kubernetes keeps events for an hour by default.</p>
        </Empty>
      ) : (
        <div class="panel">
          <Table
            caption="Kubernetes events, latest first"
            columns={COLUMNS}
            rows={events}
            keyOf={({ reason, message, source, lastAt }) => `${lastAt}${reason}${source}${message}`}
          />
        </div>
      )}
    </>
  );
}
