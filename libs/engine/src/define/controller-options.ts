import type { ApiObject, Duration, ResourceType } from "@konverge/core";
import type { ApprovalRule } from "./approval-rule.ts";
import type { Backoff } from "./backoff.ts";
import type { EventSource } from "./event-source.ts";
import type { Handler, Middleware } from "./middleware.ts";
import type { Permission } from "./permission.ts";
import type { ServiceLevel } from "./service-level.ts";
import type { Source, WatchSource } from "./source.ts";

/** How a conflicting write is retried: inside the handler, by a retry of the job, or first one and then the other. */
export type ConflictRetry = "inline" | "job" | "both";

/** Selects the clusters of a controller. With both fields, a cluster must match both. */
export interface ClusterSelection {
  /** Names of clusters. */
  readonly names?: readonly string[];
  /** Selector for the labels that the provider gives the clusters, such as `tier=prod`. */
  readonly labels?: string;
}

/** The options of {@link defineController}. */
export interface ControllerOptions<
  T extends ApiObject,
  Watched extends readonly ApiObject[] = readonly ApiObject[],
  Owned extends readonly ApiObject[] = readonly ApiObject[],
> {
  /** Lower-case letters, digits and dashes; names the queue, the metrics label and the field manager `konverge/<name>`. */
  readonly name: string;
  /** The kind to reconcile, with one key per object. A {@link Source} selects its changes. */
  readonly for: ResourceType<T> | Source<T>;
  /**
   * Kinds whose objects have a controller reference to the reconciled kind; a change reconciles the owner. A {@link Source}
   * selects their changes.
   */
  readonly owns?: {
    readonly [Index in keyof Owned]: ResourceType<Owned[Index]> | Source<Owned[Index]>;
  };
  /** Further kinds whose changes reconcile objects of this kind; `kube` reads watched kinds without API calls. */
  readonly watches?: { readonly [Index in keyof Watched]: WatchSource<Watched[Index]> };
  /**
   * Further sources of requests: results of {@link poll}, {@link stream} and {@link inbound}. The leader of the controller runs
   * them. Redis stores their state.
   */
  readonly sources?: readonly EventSource[];
  /**
   * Access of the handlers beyond the kinds above, for the role that `konverge manifests` prints. The API server rejects calls
   * without a permission. For a kind in `for` or `owns`, the verbs replace the default writes (`patch`; `create`, `patch` and
   * `delete`).
   */
  readonly permissions?: readonly Permission[];
  /** The clusters that it runs on, if the worker serves several. Default: all. */
  readonly clusters?: ClusterSelection;
  /** Concurrent attempts per cluster and worker process. Default 16. Too low leaves API budget unused; too high only adds waiting. */
  readonly concurrency?: number;
  /** Longest run of the handler. Default 60 s. Too short aborts valid work; too long delays retries. */
  readonly timeout?: Duration;
  /** Longest time between two reconciles of an object. Default 10 h, at least 1 s, spread; repairs what events missed. */
  readonly resync?: Duration;
  /** Default: the setting of the process, which is `both`. */
  readonly conflictRetry?: ConflictRetry;
  /** Delays between retries, of jobs and inside the handler; omitted parts keep their defaults. */
  readonly backoff?: Backoff;
  /** Consecutive failures before the key is dead-lettered. Default: never, since an outage must not stop keys. */
  readonly maxFailures?: number;
  /**
   * Consecutive attempts lost with their workers before the key is dead-lettered. Default 5; the last ones run alone in their
   * process, so that a key is not dead-lettered for the crashes of another. Set it to `Infinity` to retry forever.
   */
  readonly maxLost?: number;
  /** Longest time that a request can be overtaken in a backlog. Default 60 s. Too short makes the queue first come, first served. */
  readonly agingTime?: Duration;
  /** Relative starts per namespace while several wait. Default 1 each. */
  readonly weights?: Readonly<Record<string, number>>;
  /**
   * Handling of keys in a reconcile loop (docs/hints.md): `throttle` (default) delays their starts by 1 s, doubling up to 1 min;
   * `report` only reports them; `accept` does neither, for controllers that requeue or overwrite on purpose.
   */
  readonly loopProtection?: "throttle" | "report" | "accept";
  /**
   * The plans that users must approve before an attempt makes their changes. Each attempt first plans, and then makes only the
   * planned writes. Default: attempts need no approval.
   */
  readonly approval?: ApprovalRule;
  /**
   * The service level objective: the share of changes to reconcile within a time. Metrics, alerts and the dashboard report how
   * fast the error budget is used (docs/slo.md). Too strict alerts on every restart; too lax hides a slow handler. Default: none.
   */
  readonly slo?: ServiceLevel;
  /**
   * `observe`: attempts only plan, and the drift report shows what they would change. Nothing is written to the cluster.
   * Default `reconcile`.
   */
  readonly mode?: "reconcile" | "observe";
  /**
   * `reads: true` stores everything that the handler reads and writes in each attempt, so that the attempt can be replayed
   * (docs/replay.md). Values of Secrets are redacted. Cannot be combined with `approval`. Default: off.
   */
  readonly record?: { readonly reads?: boolean };
  /** Runs around every `reconcile` and `cleanup`, the first outermost; inside the middleware of the configuration. */
  readonly use?: readonly Middleware<T>[];
  /** Reconciles the actual state with the spec. May run many times; must be idempotent. */
  readonly reconcile: Handler<T>;
  /**
   * Reverts changes of `reconcile` outside the cluster. Runs instead of `reconcile` once the object is being deleted, with the
   * same retries and timeout. Before the first `reconcile`, the object gets the finalizer `konverge.dev/<name>`. The finalizer
   * is removed when `cleanup` returns nothing; `requeueAfter` and `awaitChange` keep it. `abandon` removes the finalizers of a
   * `cleanup` that no longer exists; keep it while objects may have them.
   */
  readonly cleanup?: Handler<T> | "abandon";
}
