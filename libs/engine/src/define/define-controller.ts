import {
  invalidConfig,
  toMs,
  type ApiObject,
  type Duration,
  type ObjectKey,
  type ResourceType,
  type Trigger,
} from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import type { Fairness, QueueBackoffs } from "@konverge/queue";
import type { AttemptKube } from "../access/attempt-kube.ts";
import { completeBackoffs, type Backoff } from "./backoff.ts";
import type { Predicate } from "./predicate.ts";
import type { Permission } from "./permission.ts";
import { findControllerIssues } from "./controller-issues.ts";
import { finalizerOf } from "./finalizer.ts";
import type { Log } from "./log.ts";
import type { Handler, Middleware } from "./middleware.ts";
import type { StartRun } from "./start-run.ts";

/** What a handler may answer instead of nothing. Made by `requeueAfter` and `awaitChange` of its context. */
export type ReconcileResult =
  | { readonly kind: "requeueAfter"; readonly afterMs: number }
  | { readonly kind: "awaitChange" };

/** What a handler gets. It is told the state of the object, never whether it was created or updated. */
export interface ReconcileContext<T extends ApiObject = ApiObject> {
  readonly key: ObjectKey;
  /** Which handler of the controller runs; tells middleware. */
  readonly handler: "reconcile" | "cleanup";
  /** Why this runs: the requests since the last attempt, oldest first, capped. For people. */
  readonly triggers: readonly Trigger[];
  /** The object as read just now; frozen. Change it with `kube.mutate`. */
  readonly object: T;
  /** The API server, bound to this attempt: after its end every call is refused. */
  readonly kube: AttemptKube;
  /**
   * Starts a run of a workflow for this object, at most one at a time, and tells how it stands. Bound to this attempt as `kube`
   * is. With `onExisting: "supersede"` a new generation replaces the run of the one before.
   */
  readonly startRun: StartRun;
  readonly log: Log;
  /** Aborted when the attempt must end: shutdown, timeout, lease lost. */
  readonly signal: AbortSignal;
  /** Attempts since the key last succeeded, from 1. */
  readonly attempt: number;
  /** Run again after this time at the latest. Return its result. */
  readonly requeueAfter: (after: Duration) => ReconcileResult;
  /** Nothing to do until a watched object changes. Return its result. */
  readonly awaitChange: () => ReconcileResult;
}

/** What happens to a write that lost a race: tried again inside the handler, by a retry of the job, or first one, then the other. */
export type ConflictRetry = "inline" | "job" | "both";

/** Objects of another kind whose changes concern the controller's objects. */
export interface WatchSource {
  readonly type: ResourceType;
  /** The objects to reconcile when `object` changed; called with the old state too, so that nobody is forgotten. */
  readonly map: (object: ApiObject) => readonly NamespacedName[];
}

export interface ControllerOptions<T extends ApiObject> {
  /** Lower-case and dashes; names the queue, the metrics label and the field manager `konverge/<name>`. */
  readonly name: string;
  /** The kind to reconcile: one key per object of it. */
  readonly for: ResourceType<T>;
  /** Kinds whose objects carry a controller reference to ours; a change of one reconciles its owner. */
  readonly owns?: readonly ResourceType[];
  readonly watches?: readonly WatchSource[];
  /**
   * What the handlers call beyond the kinds above, for the role that `konverge manifests` prints; what they call without a
   * permission, the API server refuses. For a kind of `for` or `owns`, its writes in place of `patch`, or of `create`, `patch`
   * and `delete`.
   */
  readonly permissions?: readonly Permission[];
  /** Which changes of our own kind count. Default {@link generationChanged}; deletion and finalizers always pass. */
  readonly predicate?: Predicate<T>;
  /** Attempts at once per worker process. Default 16. Too low leaves the API budget unused; too high only waits for it. */
  readonly concurrency?: number;
  /** Longest run of the handler, default 60 s. Too short cuts honest work; too long keeps a stuck key stuck. */
  readonly timeout?: Duration;
  /** Every object is reconciled at least this often. Default 10 h, spread; heals what an event could not. */
  readonly resync?: Duration;
  /** Default: the process's setting, which is `both`. */
  readonly conflictRetry?: ConflictRetry;
  /** Delays between job retries; parts left out keep their defaults. */
  readonly backoff?: Backoff;
  /** Failures in a row before the key is a dead letter. Default: never, since an outage must not kill keys. */
  readonly maxFailures?: number;
  /** Longest wait of a request in a backlog before it comes next, default 60 s. Too short makes the queue first come, first served. */
  readonly agingTime?: Duration;
  /** How often a namespace starts for each start of one with weight 1, while both wait. Default 1 each. */
  readonly weights?: Readonly<Record<string, number>>;
  /**
   * What is done about a key that runs in circles (docs/hints.md): its starts are put off by 1 s and then longer, up to
   * 1 min (`slow`, the default), or it is only told (`tell`).
   */
  readonly loopProtection?: "throttle" | "report";
  /** Runs around every `reconcile` and `cleanup`, the first one outermost; inside of the middleware of the configuration. */
  readonly use?: readonly Middleware<T>[];
  /** Makes the world as the object says. May run many times; must be idempotent. */
  readonly reconcile: Handler<T>;
  /**
   * Undoes outside of the cluster what `reconcile` did; runs instead of it once the object is being deleted. Before the
   * first `reconcile` the object gets the finalizer `konverge.dev/<name>`, which is removed when `cleanup` returns nothing;
   * with `requeueAfter` or `awaitChange` it stays. Retries and timeout are those of `reconcile`.
   * `abandon` removes the finalizers of a `cleanup` that is no more; leave it for as long as objects may have them.
   */
  readonly cleanup?: Handler<T> | "abandon";
}

/** A checked controller. The object type is erased: the engine treats all controllers alike. */
export interface Controller {
  readonly name: string;
  readonly for: ResourceType;
  readonly owns: readonly ResourceType[];
  readonly watches: readonly WatchSource[];
  readonly permissions: readonly Permission[];
  readonly predicate: Predicate | undefined;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly resyncMs: number;
  readonly conflictRetry: ConflictRetry | undefined;
  readonly backoff: QueueBackoffs;
  readonly maxFailures: number | undefined;
  readonly fairness: Fairness;
  readonly loopProtection: "throttle" | "report";
  readonly use: readonly Middleware[];
  readonly reconcile: Handler;
  readonly cleanup: Handler | undefined;
  /** True when the finalizers of an earlier `cleanup` are to be removed. */
  readonly abandonsCleanup: boolean;
  /** Held by objects of a controller with `cleanup`. */
  readonly finalizer: string;
}

/** @throws KonvergeError `invalid_config`, naming every field that is wrong and the cure */
export function defineController<T extends ApiObject>(options: ControllerOptions<T>): Controller {
  const issues = findControllerIssues(options);
  const name = String(options.name);
  if (issues.length > 0) throw invalidConfig(issues, `controller "${name}" is`);
  // Method bivariance is not available for properties: the one place where T is erased.
  const erased = options as unknown as ControllerOptions<ApiObject>;
  const { concurrency = 16, timeout = "60s", resync = "10h", agingTime = "60s", cleanup } = erased;
  return {
    name,
    for: erased.for,
    owns: erased.owns ?? [],
    watches: erased.watches ?? [],
    permissions: erased.permissions ?? [],
    predicate: erased.predicate,
    concurrency,
    timeoutMs: toMs(timeout, "timeout"),
    resyncMs: toMs(resync, "resync"),
    conflictRetry: options.conflictRetry,
    backoff: completeBackoffs(options.backoff),
    maxFailures: options.maxFailures,
    fairness: { ageingMs: toMs(agingTime, "ageing"), weights: erased.weights ?? {} },
    loopProtection: erased.loopProtection ?? "throttle",
    use: erased.use ?? [],
    reconcile: erased.reconcile,
    cleanup: cleanup === "abandon" ? undefined : cleanup,
    abandonsCleanup: cleanup === "abandon",
    finalizer: finalizerOf(name),
  };
}
