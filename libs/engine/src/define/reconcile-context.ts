import type { ApiObject, Duration, LimitUse, ObjectKey, Trigger } from "@konverge/core";
import type { AttemptKube } from "./attempt-kube.ts";
import type { Log } from "./log.ts";
import type { StartRun } from "./start-run.ts";

/** An optional result of a handler, made by `requeueAfter` or `awaitChange` of its context. */
export type ReconcileResult =
  | { readonly kind: "requeueAfter"; readonly afterMs: number }
  | { readonly kind: "awaitChange" };

/**
 * Calls `call` with a permit of a limit in `limits` of the configuration, and holds a slot until it settles. The signal is aborted
 * when the attempt ends or the slot is lost. Returns what `call` returns.
 * @throws KonvergeError `deferred` if there is no permit soon: let it end the attempt, which is not counted and runs again when its
 * turn comes; `invalid_config` for an unknown limit
 */
export type UseLimit = <T>(
  limit: string | LimitUse,
  call: (signal: AbortSignal) => T | Promise<T>,
) => Promise<T>;

/**
 * Calls something outside of Kubernetes, and returns its result. While the attempt is a plan, the call is skipped and listed in the
 * plan under `name`; the result is then `planned`, by default undefined.
 */
export interface CallExternal {
  <T>(name: string, call: () => T | Promise<T>): Promise<T | undefined>;
  <T>(name: string, call: () => T | Promise<T>, options: { readonly planned: T }): Promise<T>;
}

/** The input of a handler. Has the current state, not the event. */
export interface ReconcileContext<T extends ApiObject = ApiObject> {
  /** Controller, cluster, kind and name of the object. */
  readonly key: ObjectKey;
  /** The handler that runs; for middleware. */
  readonly handler: "reconcile" | "cleanup";
  /** Why this attempt runs: the requests since the last attempt, oldest first, capped. For display. */
  readonly triggers: readonly Trigger[];
  /** The object as just read; frozen. Change it with `kube.mutate`. */
  readonly object: T;
  /** The API server, bound to this attempt: calls after its end are rejected. */
  readonly kube: AttemptKube;
  /**
   * Starts a workflow run for this object, at most one at a time, and returns its state. Bound to this attempt, as `kube` is.
   * With `onExisting: "supersede"`, a new generation replaces the run of the previous one.
   */
  readonly startRun: StartRun;
  /** Calls an external service within a limit that all workers share: `await limit("stripe", () => charge(...))`. */
  readonly limit: UseLimit;
  /**
   * True while the attempt is a plan (docs/plan.md): writes through `kube` are not stored. Skip every other effect, or wrap it in
   * `external`.
   */
  readonly plan: boolean;
  /** Calls something outside of Kubernetes, unless the attempt is a plan: `await external("charge", () => charge(...))`. */
  readonly external: CallExternal;
  /**
   * Writes to the log of the worker, with the fields of the key; the last lines are kept with the attempt. Values of read Secrets
   * are removed.
   */
  readonly log: Log;
  /** Aborted when the attempt must end: shutdown, timeout, lost lease. */
  readonly signal: AbortSignal;
  /** Attempts since the key last succeeded, from 1. */
  readonly attempt: number;
  /** Runs again after this time at the latest. Return its result. */
  readonly requeueAfter: (after: Duration) => ReconcileResult;
  /** Runs again when a watched object changes. Return its result. */
  readonly awaitChange: () => ReconcileResult;
}
