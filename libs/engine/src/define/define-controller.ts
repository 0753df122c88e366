import {
  invalidConfig,
  toMs,
  type ApiObject,
  type BackoffPolicy,
  type ResourceType,
} from "@konverge/core";
import type { Fairness, QueueBackoffs } from "@konverge/queue";
import type { ApprovalRule } from "./approval-rule.ts";
import { completeBackoffs } from "./backoff.ts";
import { findControllerIssues } from "./controller-issues.ts";
import type { ClusterSelection, ConflictRetry, ControllerOptions } from "./controller-options.ts";
import type { EventSource } from "./event-source.ts";
import { finalizerOf } from "./finalizer.ts";
import type { Handler, Middleware } from "./middleware.ts";
import type { Permission } from "./permission.ts";
import { listSources, type ControllerSource } from "./source.ts";

/** Default of `maxLost`: two attempts beside others, and three alone. */
const MAX_LOST = 5;

/** A validated controller. The object type is erased, because the engine treats all controllers the same. */
export interface Controller {
  readonly name: string;
  /** The reconciled kind. */
  readonly for: ResourceType;
  /** Everything that the controller watches, the reconciled kind first. */
  readonly sources: readonly [ControllerSource, ...ControllerSource[]];
  /** Sources of requests besides the watches. */
  readonly eventSources: readonly EventSource[];
  readonly permissions: readonly Permission[];
  readonly clusters: ClusterSelection;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly resyncMs: number;
  readonly conflictRetry: ConflictRetry | undefined;
  readonly backoff: QueueBackoffs;
  readonly inlineBackoff: Partial<BackoffPolicy> | undefined;
  readonly maxFailures: number | undefined;
  readonly maxLost: number;
  readonly fairness: Fairness;
  readonly loopProtection: "throttle" | "report" | "accept";
  readonly approval: Required<ApprovalRule> | undefined;
  readonly slo: { readonly thresholdMs: number; readonly objective: number } | undefined;
  readonly mode: "reconcile" | "observe";
  /** True if its attempts can be replayed. */
  readonly recordsReads: boolean;
  readonly use: readonly Middleware[];
  readonly reconcile: Handler;
  readonly cleanup: Handler | undefined;
  /** True if the finalizers of an earlier `cleanup` must be removed. */
  readonly abandonsCleanup: boolean;
  /** Set on the objects of a controller with `cleanup`. */
  readonly finalizer: string;
}

/** @throws KonvergeError `invalid_config`, with all invalid fields and suggested fixes */
export function defineController<
  T extends ApiObject,
  Watched extends readonly ApiObject[] | [] = readonly ApiObject[],
  Owned extends readonly ApiObject[] | [] = readonly ApiObject[],
>(options: ControllerOptions<T, Watched, Owned>): Controller {
  const issues = findControllerIssues(options);
  const name = String(options.name);
  if (issues.length > 0) throw invalidConfig(issues, `controller "${name}" is`);
  // Properties have no method bivariance; this is the one place where T is erased.
  const erased = options as unknown as ControllerOptions<ApiObject>;
  const { concurrency = 16, timeout = "60s", resync = "10h", agingTime = "60s", cleanup } = erased;
  const sources = listSources(erased);
  return {
    name,
    for: wholeOf(sources[0].type),
    sources,
    eventSources: erased.sources ?? [],
    permissions: erased.permissions ?? [],
    clusters: erased.clusters ?? {},
    concurrency,
    timeoutMs: toMs(timeout, "timeout"),
    resyncMs: toMs(resync, "resync"),
    conflictRetry: options.conflictRetry,
    backoff: completeBackoffs(options.backoff),
    inlineBackoff: options.backoff?.inline,
    maxFailures: options.maxFailures,
    maxLost: options.maxLost ?? MAX_LOST,
    fairness: { agingMs: toMs(agingTime, "agingTime"), weights: erased.weights ?? {} },
    loopProtection: erased.loopProtection ?? "throttle",
    approval: erased.approval && { role: "operator", by: 1, ...erased.approval },
    slo: erased.slo && {
      thresholdMs: toMs(erased.slo.threshold, "threshold"),
      objective: erased.slo.objective,
    },
    mode: erased.mode ?? "reconcile",
    recordsReads: erased.record?.reads === true,
    use: erased.use ?? [],
    reconcile: erased.reconcile,
    cleanup: cleanup === "abandon" ? undefined : cleanup,
    abandonsCleanup: cleanup === "abandon",
    finalizer: finalizerOf(name),
  };
}

/** A handler receives the whole object, even if only a part of the kind is watched. */
function wholeOf(type: ResourceType): ResourceType {
  if (type.keep === undefined) return type;
  const { keep: _part, ...whole } = type;
  return whole;
}
