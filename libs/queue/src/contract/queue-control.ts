import type { ObjectKey } from "@konverge/core";
import type { KeyState } from "./key-state.ts";
import type { OperatorAction, Pause, PauseScope } from "./pause.ts";

/** An order that was given, with its time (ISO 8601). `scope` is text: a key, a namespace, or a controller's all. */
export interface OperatorActionRecord extends OperatorAction {
  readonly kind: "pause" | "resume" | "cancel" | "release";
  readonly scope: string;
  readonly at: string;
  /** Of a release: the keys that were released. */
  readonly count?: number;
}

export interface KeyFilter {
  readonly phase?: KeyState["phase"];
  readonly namespace?: string;
  /** Any part of the name. */
  readonly name?: string;
}

export interface KeyQuery extends KeyFilter {
  /** Only keys behind this one; `next` of the page before. */
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
   * Present while there may be more. A page can be short, or empty, and have it: a call looks at 10,000 keys at most, so
   * that no search holds up the queue.
   */
  readonly next?: string;
}

/** How a cancellation went. */
export type CancelResult =
  /** Nothing was changed: the request had ended, or been cancelled, before. */
  | "alreadyFinished"
  /** No attempt will run for it. */
  | "cancelled"
  /** It has ended for its caller; the key goes on, since others have requested it too. */
  | "detached"
  /** The attempt that runs for it is being aborted, within about half a second. */
  | "aborting";

/** Dead letters to release: one key, or all that match. */
export type DeadLetterSelector =
  | { readonly key: ObjectKey }
  | { readonly match: Omit<KeyFilter, "phase"> };

/** What people do with a queue. Nothing here goes past `request`: BullMQ's own remove, retry and drain would lose requests. */
export interface QueueControl {
  /** Starts nothing of the scope any more; what runs may end, what is requested stays pending. */
  pause(scope: PauseScope, action: OperatorAction): Promise<void>;
  /** Requests every key of the scope that waited for it. @throws KonvergeError `not_found` when it is not paused. */
  resume(scope: PauseScope, action: OperatorAction): Promise<{ readonly resumed: number }>;
  listPauses(): Promise<Pause[]>;
  /** Withdraws a request. @throws KonvergeError `not_found` for an id that was never given. */
  cancel(requestId: string, action: OperatorAction): Promise<CancelResult>;
  listKeys(query?: KeyQuery): Promise<KeyPage>;
  /**
   * Requests dead keys, as a person's requests: their counters begin anew. Answers how many there were.
   * @throws KonvergeError `not_found` for one key that is not dead.
   */
  release(
    selection: DeadLetterSelector,
    action: OperatorAction,
    options?: { readonly dryRun?: boolean; readonly via?: "http" | "cli" },
  ): Promise<{ readonly count: number }>;
  /** The last 200, newest first. */
  listOperatorActions(): Promise<OperatorActionRecord[]>;
}
