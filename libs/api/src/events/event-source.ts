import type { StreamEvent } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import type { HistoryReader } from "@konverge/queue";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Place } from "../access/caller.ts";
import { formatCursor, isBehind, type EventCursor } from "./event-cursor.ts";
import { summaryOf } from "../views/history-view.ts";
import { placeOf } from "../queues/place-of.ts";

/** An event with its place and the cursor after it. */
export interface PlacedEvent {
  readonly id: string;
  readonly event: StreamEvent;
  readonly place: Place;
  /** Name of the object, if the event has one. */
  readonly name: string | undefined;
  readonly cursor: EventCursor;
}

/**
 * The events of a cluster. They are derived from existing data: the search index of attempts, the audit log and the
 * transitions of the guard.
 */
export interface EventSource {
  readonly cluster: string;
  /** Returns the current position. */
  now(): Promise<EventCursor>;
  /** Reads the events after a cursor, oldest first per kind. */
  after(from: EventCursor, options: { readonly withGuard: boolean }): Promise<EventBatch>;
}

interface EventBatch {
  readonly events: readonly PlacedEvent[];
  /** The position after the batch. */
  readonly cursor: EventCursor;
  /** True if more events may be available. */
  readonly isFull: boolean;
}

const MOST_READ = 500;
/** Actions that are not events of the fleet. */
const QUIET: ReadonlySet<string> = new Set([
  "reconcile",
  "token.create",
  "token.revoke",
  "session.create",
  "session.end",
  "refused",
]);

export function createEventSource(options: {
  readonly cluster: string;
  readonly history: HistoryReader;
  readonly audit: AuditLog;
  readonly guards: GuardControl;
}): EventSource {
  const { cluster, history, audit, guards } = options;
  return {
    cluster,
    async now() {
      const [attempt, change, view] = await Promise.all([
        history.last(),
        audit.last(),
        guards.read(cluster),
      ]);
      return { attempt, change, guardMs: view?.transitions[0]?.atMs ?? 0 };
    },
    async after(from, { withGuard }) {
      const [attempts, changes, view] = await Promise.all([
        history.after(from.attempt, MOST_READ),
        audit.after(from.change, MOST_READ),
        withGuard ? guards.read(cluster) : undefined,
      ]);
      const events: PlacedEvent[] = [];
      let cursor = from;
      const add = (event: StreamEvent, place: Place, name?: string) => {
        events.push({ id: formatCursor(cursor), event, place, name, cursor });
      };
      for (const { id, row } of attempts) {
        cursor = { ...cursor, attempt: id };
        const data = summaryOf(row);
        add({ type: "attempt", data }, placeOf(row.key), data.name);
      }
      for (const { id, entry: data } of changes) {
        cursor = { ...cursor, change: id };
        if (data?.cluster !== cluster || QUIET.has(data.action)) continue;
        add({ type: "change", data }, data, data.name);
      }
      for (const transition of (view?.transitions ?? []).toReversed()) {
        if (transition.atMs <= from.guardMs) continue;
        cursor = { ...cursor, guardMs: transition.atMs };
        add({ type: "guard", data: { cluster, transition } }, { cluster });
      }
      const isFull = attempts.length === MOST_READ || changes.length === MOST_READ;
      return { events, cursor, isFull };
    },
  };
}

/** True if a reader at `cursor` has not received the event. */
export function isNewTo(cursor: EventCursor, { event, cursor: own }: PlacedEvent): boolean {
  switch (event.type) {
    case "attempt":
      return isBehind(own.attempt, cursor.attempt);
    case "change":
      return isBehind(own.change, cursor.change);
    case "guard":
      return own.guardMs > cursor.guardMs;
  }
}
