import { createEventRecorder } from "@konverge/kube";
import { defined, type ObjectKey } from "@konverge/core";
import type { Quarantine, QueueWorker } from "@konverge/queue";
import type { ControllerRuntime } from "./access/attempt.ts";
import type { ObjectCache } from "./access/object-cache.ts";
import { createWriteGroups } from "./access/write-group.ts";
import { createApprovedRun } from "./approve/run-with-approval.ts";
import { createAttemptHandler, type RunLease } from "./attempt/attempt-handler.ts";
import { AttemptReporter } from "./attempt/attempt-reporter.ts";
import type { LoopWatch } from "./attempt/loop-watch.ts";
import type { Controller } from "./define/define-controller.ts";
import { inlineRetry } from "./define/inline-retry.ts";
import type { EngineOptions } from "./engine-options.ts";
import type { AttemptHistory } from "./history/attempt-history.ts";
import type { OutageLog } from "./history/outage-log.ts";
import { createObservedRun } from "./observe/run-observed.ts";
import { createRecordedRun } from "./recording/record-attempts.ts";
import type { Leader } from "./watch/start-leader.ts";
import type { Reflectors } from "./watch/start-reflectors.ts";

/** Share of the rate limit for retries after failures, so that they do not displace other work. */
const RETRY_SHARE = 0.2;

export interface WorkParts {
  readonly reflectors: Pick<Reflectors, "isInScope">;
  readonly cache: ObjectCache;
  readonly loop: LoopWatch;
  readonly history: AttemptHistory | undefined;
  readonly quarantine: Quarantine;
  readonly outages: Pick<OutageLog, "spans">;
}

/** Starts taking attempts of a controller from its queue. */
export function workOnController(
  { controller, queue }: Pick<Leader, "controller" | "queue">,
  { reflectors, cache, loop, history, quarantine, outages }: WorkParts,
  options: EngineOptions,
): QueueWorker {
  const { log, metrics, workerId, ratePerSecond, tracing } = options;
  const past = history?.of(controller, queue);
  const report = new AttemptReporter({
    controller,
    log,
    metrics,
    workerId,
    history: past,
    outages: () => outages.spans(),
  });
  const runtime = runtimeOf(controller, { reflectors, cache }, options);
  const handle = createAttemptHandler({
    runtime,
    report,
    loop,
    ...defined({ run: runOf({ runtime, queue, loop }, options) }),
    putOffMs: past && ((lease) => past.throttle.putOffMs(lease)),
    tracing,
  });
  return queue.work({
    workerId,
    concurrency: concurrencyOf(controller, options),
    backoffs: controller.backoff,
    ...(ratePerSecond === undefined ? {} : { retriesPerSecond: RETRY_SHARE * ratePerSecond }),
    ...defined({ maxFailures: controller.maxFailures }),
    maxLost: maxLostOf(controller),
    quarantine,
    fairness: controller.fairness,
    handle,
    onClosed: (attempt, end, closed) => report.closed(attempt, end, closed),
    onLost: (lost) => {
      report.lost(lost);
      past?.noteLost(lost);
    },
    onError: (error) => log.warn({ err: error, controller: controller.name }, "queue error"),
  });
}

/** Returns how attempts run if they first plan, or only plan. */
function runOf(
  {
    runtime,
    queue,
    loop,
  }: Pick<WorkParts, "loop"> &
    Pick<Leader, "queue"> & {
      readonly runtime: ControllerRuntime;
    },
  { approvals, drifts, recordings, workerId: worker }: EngineOptions,
): RunLease | undefined {
  const { approval: rule, mode, recordsReads } = runtime.controller;
  if (mode === "observe" && drifts !== undefined) {
    return createObservedRun({ runtime, drifts, loop, worker });
  }
  if (recordsReads && recordings !== undefined) {
    return createRecordedRun({ runtime, loop, recordings });
  }
  if (rule === undefined || approvals === undefined) return undefined;
  const newestEpoch = async (key: ObjectKey) => (await queue.getKey(key))?.epoch;
  return createApprovedRun({ runtime, rule, approvals, newestEpoch, loop, worker });
}

/** Lost attempts are failures too, but the first two may be the fault of another key in the process. */
function maxLostOf({ maxLost, maxFailures = Infinity }: Controller): number {
  return Math.min(maxLost, Math.max(3, maxFailures));
}

export function concurrencyOf(
  controller: Controller,
  { concurrency = Infinity }: Pick<EngineOptions, "concurrency">,
): number {
  return Math.min(controller.concurrency, concurrency);
}

/** The options that attempts use. */
export type RuntimeOptions = Pick<
  EngineOptions,
  "use" | "client" | "lanes" | "conflictRetry" | "runs" | "limits" | "clusters"
>;

/** The state that attempts and plans of a controller share. */
export function runtimeOf(
  controller: Controller,
  { reflectors, cache }: Pick<WorkParts, "reflectors" | "cache">,
  options: RuntimeOptions,
): ControllerRuntime {
  return {
    controller,
    use: [...(options.use ?? []), ...controller.use],
    client: options.client,
    isInScope: (namespace, query) => reflectors.isInScope(controller.sources[0], namespace, query),
    cache,
    lanes: options.lanes,
    groups: createWriteGroups(),
    retry: inlineRetry(
      controller.conflictRetry ?? options.conflictRetry ?? "both",
      controller.inlineBackoff,
    ),
    runs: options.runs,
    events: createEventRecorder(`konverge/${controller.name}`),
    limits: options.limits,
    clusters: options.clusters,
  };
}
