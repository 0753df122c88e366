import type { ObjectKey } from "@konverge/core";
import type { KeyState } from "./key-state.ts";
import type { ScanOptions } from "./scan-options.ts";
import type { OperatorAction, Pause, PauseScope } from "./pause.ts";

/** A logged operator action with its time (ISO 8601). `scope` is text: a key, a namespace or the controller. */
export interface OperatorActionRecord extends OperatorAction {
  readonly kind: "pause" | "resume" | "cancel" | "release";
  readonly scope: string;
  readonly at: string;
  /** Number of keys that a release requested. */
  readonly count?: number;
}

export interface KeyFilter {
  readonly phase?: KeyState["phase"];
  readonly namespace?: string;
  /** A substring of the name. */
  readonly name?: string;
}

export interface KeyQuery extends KeyFilter {
  /** Only keys of these namespaces; then `next` contains no name of another namespace. Default: all. */
  readonly namespaces?: readonly string[];
  /** Only keys after this one; the `next` of the previous page. */
  readonly after?: string;
  /** 1 to 1,000. Default 100. */
  readonly limit?: number;
}

/** A key in a list. */
export type KeySummary = Omit<KeyState, "triggers">;

export interface KeyPage {
  /** By key. */
  readonly items: readonly KeySummary[];
  /**
   * Present if more keys may follow. A short or empty page can have it: a call reads 10,000 keys at most, and ends after its
   * budget of time, so that no search delays the queue.
   */
  readonly next?: string;
}

/** The result of a cancellation. */
export type CancelResult =
  /** No change: the request had already ended or been cancelled. */
  | "alreadyFinished"
  /** No attempt will run for it. */
  | "cancelled"
  /** The request has ended; the key continues for other requests. */
  | "detached"
  /** Its running attempt is being aborted, within about half a second. */
  | "aborting";

/** Dead letters to release: one key, or all that match. */
export type DeadLetterSelector =
  | { readonly key: ObjectKey }
  | { readonly match: Omit<KeyFilter, "phase"> };

/** The operator actions on a queue. All use `request`: BullMQ's remove, retry and drain would lose requests. */
export interface QueueControl {
  /** Stops starting attempts in the scope. Running attempts end normally; requests stay pending. */
  pause(scope: PauseScope, action: OperatorAction): Promise<void>;
  /** Requests every paused key of the scope. @throws KonvergeError `not_found` if the scope is not paused. */
  resume(scope: PauseScope, action: OperatorAction): Promise<{ readonly resumed: number }>;
  listPauses(): Promise<Pause[]>;
  /** Cancels a request. @throws KonvergeError `not_found` for an unknown id. */
  cancel(requestId: string, action: OperatorAction): Promise<CancelResult>;
  listKeys(query?: KeyQuery, options?: ScanOptions): Promise<KeyPage>;
  /**
   * Requests dead-lettered keys as user requests, which resets their counters. Returns the number of keys.
   * @throws KonvergeError `not_found` for a single key that is not dead-lettered.
   */
  release(
    selection: DeadLetterSelector,
    action: OperatorAction,
    options?: { readonly dryRun?: boolean; readonly via?: "http" | "cli" },
  ): Promise<{ readonly count: number }>;
  /** The latest 200, newest first. */
  listOperatorActions(): Promise<OperatorActionRecord[]>;
}
