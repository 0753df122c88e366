import {
  defineLadder,
  KonvergeError,
  type ApiObject,
  type Ladder,
  type ObjectKey,
  type ResourceType,
  type Trigger,
} from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import { findFairnessIssues, type Fairness } from "@konverge/queue";
import type { AttemptKube } from "./attempt-kube.ts";
import type { ChangePredicate } from "./change-predicate.ts";
import { toMs, type Duration } from "./duration.ts";
import type { Log } from "./log.ts";

/** What a handler may answer instead of nothing. Made by `requeueAfter` and `awaitChange` of its context. */
export type ReconcileResult =
  | { readonly kind: "requeueAfter"; readonly afterMs: number }
  | { readonly kind: "awaitChange" };

/** What a handler gets. It is told the state of the object, never whether it was created or updated. */
export interface ReconcileContext<T extends ApiObject = ApiObject> {
  readonly key: ObjectKey;
  /** Why this runs: the requests since the last attempt, oldest first, capped. For people. */
  readonly triggers: readonly Trigger[];
  /** The object as read just now; frozen. Change it with `kube.mutate`. */
  readonly object: T;
  /** The API server, bound to this attempt: after its end every call is refused. */
  readonly kube: AttemptKube;
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
  /** Which changes of our own kind count. Default {@link generationChanged}; deletion and finalizers always pass. */
  readonly when?: ChangePredicate<T>;
  /** Attempts at once per worker process. Default 16. Too low leaves the API budget unused; too high only waits for it. */
  readonly concurrency?: number;
  /** Longest run of the handler, default 60 s. Too short cuts honest work; too long keeps a stuck key stuck. */
  readonly timeout?: Duration;
  /** Every object is reconciled at least this often. Default 10 h, spread; heals what an event could not. */
  readonly resync?: Duration;
  /** Default: the process's setting, which is `both`. */
  readonly conflictRetry?: ConflictRetry;
  /** Delays between job retries; parts left out keep their defaults. */
  readonly backoff?: { readonly conflict?: Ladder; readonly failure?: Ladder };
  /** Failures in a row before the key is a dead letter. Default: never, since an outage must not kill keys. */
  readonly maxFailures?: number;
  /** Longest wait of a request in a backlog before it comes next, default 60 s. Too short makes the queue first come, first served. */
  readonly ageing?: Duration;
  /** How often a namespace starts for each start of one with weight 1, while both wait. Default 1 each. */
  readonly weights?: Readonly<Record<string, number>>;
  /** Makes the world as the object says. May run many times; must be idempotent. */
  readonly reconcile: (context: ReconcileContext<T>) => Promise<ReconcileResult | void>;
}

/** A checked controller. The object type is erased: the engine treats all controllers alike. */
export interface Controller {
  readonly name: string;
  readonly for: ResourceType;
  readonly owns: readonly ResourceType[];
  readonly watches: readonly WatchSource[];
  readonly when: ChangePredicate | undefined;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly resyncMs: number;
  readonly conflictRetry: ConflictRetry | undefined;
  readonly backoff: { readonly conflict?: Ladder; readonly failure?: Ladder };
  readonly maxFailures: number | undefined;
  readonly fairness: Fairness;
  readonly reconcile: (context: ReconcileContext) => Promise<ReconcileResult | void>;
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** @throws KonvergeError `invalid_config`, naming the field and the cure. */
export function defineController<T extends ApiObject>(options: ControllerOptions<T>): Controller {
  const {
    name,
    concurrency = 16,
    timeout = "60s",
    resync = "10h",
    backoff = {},
    maxFailures,
    ageing = "60s",
    weights = {},
  } = options;
  const refuse = (what: string) =>
    new KonvergeError("invalid_config", `controller "${name}": ${what}`);
  if (!NAME.test(name))
    throw refuse("name must be lower-case letters, digits and dashes, at most 63");
  if (!(Number.isInteger(concurrency) && concurrency >= 1)) {
    throw refuse(`concurrency ${concurrency} must be a whole number from 1`);
  }
  if (maxFailures !== undefined && !(Number.isInteger(maxFailures) && maxFailures >= 1)) {
    throw refuse(
      `maxFailures ${maxFailures} must be a whole number from 1; leave it out to never give up`,
    );
  }
  try {
    if (backoff.conflict !== undefined) defineLadder(backoff.conflict);
    if (backoff.failure !== undefined) defineLadder(backoff.failure);
  } catch (error) {
    throw new KonvergeError("invalid_config", `controller "${name}": backoff: ${String(error)}`, {
      cause: error,
    });
  }
  const fairness = { ageingMs: toMs(ageing, `controller "${name}": ageing`), weights };
  const wrong = findFairnessIssues(fairness)[0];
  if (wrong !== undefined) throw refuse(wrong.detail);
  // Method bivariance is not available for properties: the one place where T is erased.
  const erased = options as unknown as ControllerOptions<ApiObject>;
  return {
    name,
    for: erased.for,
    owns: erased.owns ?? [],
    watches: erased.watches ?? [],
    when: erased.when,
    concurrency,
    timeoutMs: toMs(timeout, `controller "${name}": timeout`),
    resyncMs: toMs(resync, `controller "${name}": resync`),
    conflictRetry: options.conflictRetry,
    backoff,
    maxFailures,
    fairness,
    reconcile: erased.reconcile,
  };
}
