import { defined, type WorkerRole } from "@konverge/core";
import type { KubeClient, LeaderElectionOptions } from "@konverge/kube";
import type { HistoryWriter, QueueWorker, WorkQueue } from "@konverge/queue";
import type { ObjectLanes } from "@konverge/lanes";
import type { Metrics, Tracing } from "@konverge/telemetry";
import { createAttemptReporter } from "./attempt/attempt-reporter.ts";
import { createAttemptTrace } from "./access/attempt-trace.ts";
import { checkServed } from "./watch/check-served.ts";
import { createShutdown, type Shutdown } from "./create-shutdown.ts";
import type { ConflictRetry, Controller } from "./define/define-controller.ts";
import { followWorkable } from "./watch/follow-workable.ts";
import { createAttemptHistory } from "./history/attempt-history.ts";
import { LOOP_CAUSE } from "./history/find-loop.ts";
import { warnOfLeftFinalizers } from "./watch/left-finalizers.ts";
import type { Log } from "./define/log.ts";
import { watchLoop } from "./attempt/loop-watch.ts";
import { withMiddleware, type Middleware } from "./define/middleware.ts";
import { createObjectCache, typeId } from "./access/object-cache.ts";
import { createRequestSource } from "./watch/request-source.ts";
import { runAttempt } from "./attempt/run-attempt.ts";
import { createRepeatedSignal, startLeader, type Leader } from "./watch/start-leader.ts";
import type { RunStarter } from "./define/start-run.ts";
import { startReflectors } from "./watch/start-reflectors.ts";
import { createWriteGroups } from "./access/write-group.ts";

/** Of the rate towards an API server; what works must not wait behind what fails. */
const RETRY_SHARE = 0.2;

export interface EngineOptions {
  readonly controllers: readonly Controller[];
  readonly client: KubeClient;
  /** One queue per controller, of the same cluster as the client. */
  readonly queueFor: (controller: Controller) => WorkQueue;
  /** The turn-taking of all writers of the cluster. */
  readonly lanes: ObjectLanes;
  /**
   * Stores what explains attempts beyond their own records. Left out: no search, no fights, and no key that runs in circles is
   * found or slowed down. Closed by whoever made it.
   */
  readonly history?: HistoryWriter;
  /** Where handlers start runs of workflows; opened by the first who does. Default: nowhere, and they are refused. */
  readonly runs?: () => RunStarter;
  /** Unique per process; shown in records and Leases. */
  readonly workerId: string;
  /** What this process does of the two. Default `all`. */
  readonly role?: WorkerRole;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Runs around the handlers of all controllers, outside of their own middleware. */
  readonly use?: readonly Middleware[];
  /** What traces attempts, from `loadTracing`. Default: nothing does, and nothing is asked per call. */
  readonly tracing?: Tracing;
  /** API calls per second that the fleet may make in good times; retries after failures get a fifth of it. Default: no bound for them. */
  readonly ratePerSecond?: number;
  /** For controllers that do not say. Default `both`. */
  readonly conflictRetry?: ConflictRetry;
  /** Attempts at once per controller, whatever the controllers say; for a small process. */
  readonly concurrency?: number;
  /** Calls back when work should stop because the API server may not be called, and when it may go on. */
  readonly onWorkable?: (listener: (workable: boolean) => void) => () => void;
  /** A watch or an election was refused with 403 after the start; again at each try. */
  readonly onForbidden?: (error: Error) => void;
  /** Tells installations on one cluster apart; their producers must not elect each other. Default `konverge`. */
  readonly installation?: string;
  /** How it lets go at the stop, where more than the engine does. Default: by itself. */
  readonly release?: Shutdown;
  /** Where the Leases of the elected producers live. Default `default`. */
  readonly leaseNamespace?: string;
  readonly election?: Pick<
    LeaderElectionOptions,
    "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs"
  >;
}

export interface Engine {
  /** False until every watch has its first list, and again once it stops. */
  readonly ready: boolean;
  /** If this process is the elected producer of the controller, it requests all its objects once more. */
  requestAgain(controller: string, reason: string): void;
  /** Stops taking work, waits for running attempts up to `graceMs`, aborts the rest, gives up leadership; see {@link Shutdown}. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** As `stop`, or in the middle of one, but aborts running attempts at once; their keys run again elsewhere. */
  kill(): Promise<void>;
}

/**
 * Runs controllers on one cluster: watches become requests (only in the elected producer), requests become attempts (in
 * every process that works). Resolves when the first lists are in and work is being taken.
 * @throws KonvergeError `crd_mismatch` when the cluster does not serve a kind; KubeApiError when it forbids to watch one.
 */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { controllers, client, log, metrics, ratePerSecond, role = "all" } = options;
  await Promise.all(controllers.map((controller) => checkServed(controller, client, log)));

  const parts: Leader[] = controllers.map((controller) => {
    const queue = options.queueFor(controller);
    return {
      controller,
      queue,
      source: createRequestSource(controller, queue, {
        log,
        isSensitive: (type) => client.isSensitive(type),
      }),
      leading: false,
      again: createRepeatedSignal(),
    };
  });
  for (const part of parts) {
    const { controller, queue } = part;
    metrics.addController(
      controller.name,
      role === "watch" ? 0 : concurrencyOf(controller, options),
    );
    metrics.observeQueue(controller.name, {
      isLeader: () => part.leading,
      counts: async () => {
        const [counts, headAgeMs] = await Promise.all([queue.counts(), queue.headAgeMs()]);
        return { ...counts, headAgeMs };
      },
    });
  }
  const state = { ready: false };
  const refused = Promise.withResolvers<never>();
  // Nobody waits for it after the start.
  refused.promise.catch(() => undefined);
  const onForbidden = (error: Error) => {
    refused.reject(error);
    if (state.ready) options.onForbidden?.(error);
  };
  const reflectors = startReflectors(parts, { client, log, metrics, role, onForbidden });
  const cache = createObjectCache(reflectors);
  const loop = watchLoop(log);
  try {
    await Promise.race([reflectors.synced(), refused.promise]);
  } catch (error) {
    loop.stop();
    await reflectors.stop();
    // A connection that is closed while it opens complains.
    await Promise.allSettled(parts.map(({ queue }) => queue.counts()));
    await Promise.all(parts.map(({ queue }) => queue.close()));
    throw error;
  }
  const producers = role === "work" ? [] : parts;
  for (const { controller } of producers) {
    const objects = reflectors.get(typeId(controller.for))?.list() ?? [];
    warnOfLeftFinalizers(controller, objects, log);
  }
  const elections = producers.map((part) => ({
    what: `the leader Lease of ${part.controller.name}`,
    election: startLeader(part, reflectors, options),
  }));
  const history =
    options.history === undefined
      ? undefined
      : createAttemptHistory({
          writer: options.history,
          client,
          workerId: options.workerId,
          log,
          metrics,
        });
  const workers: QueueWorker[] = (role === "watch" ? [] : parts).map(({ controller, queue }) => {
    const past = history?.of(controller, queue);
    const report = createAttemptReporter({
      controller,
      log,
      metrics,
      workerId: options.workerId,
      ...(past === undefined ? {} : { hintsOf: past.hintsOf, onRecord: past.note }),
    });
    const use = [...(options.use ?? []), ...controller.use];
    const handlers = {
      reconcile: withMiddleware(use, controller.reconcile),
      cleanup: controller.cleanup && withMiddleware(use, controller.cleanup),
    };
    const groups = createWriteGroups();
    return queue.work({
      workerId: options.workerId,
      concurrency: concurrencyOf(controller, options),
      backoffs: controller.backoff,
      ...(ratePerSecond === undefined ? {} : { retriesPerSecond: RETRY_SHARE * ratePerSecond }),
      ...defined({ maxFailures: controller.maxFailures }),
      fairness: controller.fairness,
      handle: async (attempt) => {
        const span = options.tracing?.startAttempt({
          ...attempt,
          kind: controller.for.kind,
          server: client.server,
        });
        const afterMs = past?.throttle.putOffMs(attempt) ?? 0;
        const putOffMs = typeof afterMs === "number" ? afterMs : await afterMs;
        if (putOffMs > 0) {
          const outcome = { kind: "deferred", afterMs: putOffMs, cause: LOOP_CAUSE } as const;
          report.logFor(attempt, span?.traceId);
          const run = { outcome, trace: createAttemptTrace(), object: undefined };
          return { outcome, record: report.finished(attempt, run, span) };
        }
        const runOptions = {
          controller,
          handlers,
          loop,
          client,
          cache,
          lanes: options.lanes,
          groups,
          runs: options.runs,
          conflictRetry: controller.conflictRetry ?? options.conflictRetry ?? "both",
          log: report.logFor(attempt, span?.traceId),
          ...defined({ span }),
        };
        const run = await (span === undefined
          ? runAttempt(attempt, runOptions)
          : span.run(() => runAttempt(attempt, runOptions)));
        return { outcome: run.outcome, record: report.finished(attempt, run, span) };
      },
      onClosed: report.closed,
      onLost: (lost) => {
        report.lost(lost);
        past?.noteLost(lost);
      },
      onError: (error) => log.warn({ err: error, controller: controller.name }, "queue error"),
    });
  });
  const unsubscribe = options.onWorkable?.(followWorkable(workers, log)) ?? (() => undefined);
  state.ready = true;
  log.info({ role, controllers: controllers.map(({ name }) => name) }, "engine started");

  const { release = createShutdown(log) } = options;
  let stopping: Promise<void> | undefined;
  const shutDown = async (graceMs: number) => {
    release.begin(graceMs);
    unsubscribe();
    state.ready = false;
    await Promise.all(workers.map((worker) => worker.stop({ graceMs })));
    await release.step("what explains the last attempts", async () => await history?.stop());
    await Promise.all(
      elections.map(({ what, election }) =>
        release.step(what, (signal) => election.stop({ signal })),
      ),
    );
    await release.step("watches", () => reflectors.stop());
    await release.step("connections of the queues", async () => {
      await Promise.all(parts.map(({ queue }) => queue.close()));
    });
    loop.stop();
    log.info({}, "engine stopped");
  };

  return {
    get ready() {
      return state.ready;
    },
    requestAgain(name, reason) {
      for (const { controller, again } of parts) if (controller.name === name) again.fire(reason);
    },
    stop({ graceMs = 30_000 } = {}) {
      stopping ??= shutDown(graceMs);
      return stopping;
    },
    async kill() {
      release.begin(0);
      stopping ??= shutDown(0);
      await Promise.all(workers.map((worker) => worker.kill()));
      await stopping;
    },
  };
}

function concurrencyOf(controller: Controller, options: EngineOptions): number {
  return Math.min(controller.concurrency, options.concurrency ?? Infinity);
}
