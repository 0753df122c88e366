import type { StreamEvent } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import type { HistoryReader } from "@konverge/queue";
import type { AuditLog } from "../kept/audit-log.ts";
import type { Place } from "../access/caller.ts";
import { formatCursor, isBehind, type EventCursor } from "./event-cursor.ts";
import { summaryOf } from "../routes/history-routes.ts";
import { placeOf } from "../queues/place-of.ts";

/** An event, where it happened, and where to go on after it. */
export interface PlacedEvent {
  readonly id: string;
  readonly event: StreamEvent;
  readonly place: Place;
  /** Of the object, where it is about one. */
  readonly name: string | undefined;
  readonly cursor: EventCursor;
}

/**
 * What happened on a cluster, read from what is stored anyway: the search index of attempts, the audit log, the guard's
 * transitions. Nobody writes anything for it.
 */
export interface EventSource {
  readonly cluster: string;
  /** Where the present is. */
  now(): Promise<EventCursor>;
  /** What lies behind a cursor, oldest first per kind. */
  after(from: EventCursor, options: { readonly withGuard: boolean }): Promise<EventBatch>;
}

interface EventBatch {
  readonly events: readonly PlacedEvent[];
  /** Where to go on. */
  readonly cursor: EventCursor;
  /** True when there may be more already. */
  readonly isFull: boolean;
}

const MOST_READ = 500;
/** Requests and tokens are no news of the fleet. */
const QUIET: ReadonlySet<string> = new Set(["reconcile", "token.create", "token.revoke"]);

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

/** True for an event that a reader at `cursor` has not had. */
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
