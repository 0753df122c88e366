/** A worker process of the fleet: the real engine on its own network, with handlers that write a journal. */
import { AsyncLocalStorage } from "node:async_hooks";
import { openSync, writeSync } from "node:fs";
import { sleepMs, type BackoffPolicy } from "@konverge/core";
import {
  defineController,
  startEngine,
  type Engine,
  type ReconcileContext,
} from "@konverge/engine";
import { createGuard } from "@konverge/guard";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import {
  createHistoryWriter,
  createWorkQueue,
  type AttemptLease,
  type WorkQueue,
} from "@konverge/queue";
import { onceAdmitted } from "../../libs/worker/src/once-admitted.ts";
import { createObjectLanes, type ObjectLanes } from "@konverge/lanes";
import { createLogger, createMetrics } from "@konverge/telemetry";
import {
  AGING_MS,
  CAP_MS,
  Counter,
  LEASE_MS,
  Plain,
  hotObject,
  modeOf,
  type FleetWorkerConfig,
  type FleetWord,
} from "./fleet-contract.ts";
import type { JournalLine } from "./fleet-journal.ts";

const config = JSON.parse(process.argv[2] ?? "{}") as FleetWorkerConfig;
const { prefix, workerId } = config;
const redis = { url: config.redisUrl };
const log = createLogger({ service: "worker", version: "test", level: "warn" });
const journalFile = openSync(config.journal, "a");
/** Written synchronously, so that the journal of a killed process is complete. All processes share the monotonic clock. */
const journal = (line: JournalLine) => {
  writeSync(
    journalFile,
    `${JSON.stringify({ ...line, atUs: Number(process.hrtime.bigint() / 1_000n) })}\n`,
  );
};
const attempts = new AsyncLocalStorage<AttemptLease>();
const running = (): AttemptLease => {
  const attempt = attempts.getStore();
  if (attempt === undefined) throw new Error("outside of an attempt");
  return attempt;
};

/** Wraps the queue to give handlers their attempt, and to log its end in the journal. */
function observed(queue: WorkQueue): WorkQueue {
  return {
    ...queue,
    work: (options) =>
      queue.work({
        ...options,
        handle: (attempt) => attempts.run(attempt, () => options.handle(attempt)),
        onClosed: (attempt, end, closed) => {
          const { id, epoch } = attempt;
          journal({ kind: "closed", id, epoch, fenced: closed.fenced, outcome: end.outcome.kind });
          options.onClosed?.(attempt, end, closed);
        },
      }),
  };
}

/** Journal access of one run of a handler. */
async function journaled<R>(run: () => Promise<R>): Promise<R> {
  const { id, epoch, startedAtMs } = running();
  journal({ kind: "begin", id, epoch, startedAtMs, worker: workerId });
  try {
    return await run();
  } finally {
    journal({ kind: "end", id, epoch });
  }
}

const policy: BackoffPolicy = {
  baseMs: 50,
  factor: 2,
  capMs: CAP_MS,
  steps: Infinity,
  jitter: { kind: "full" },
};
const backoff = { conflict: policy, failure: policy, rejected: policy };
const guard = await createGuard({
  redis,
  cluster: "default",
  prefix,
  workerId,
  limits: { ratePerSecond: 1_000, burst: 2_000 },
});
const client = createKubeClient({
  credentials: loadKubeCredentials({ kubeconfigText: config.kubeconfig }),
  gate: guard,
  userAgent: `fleet/${workerId}`,
  requestTimeoutMs: 5_000,
});

/**
 * Increments an object and signs the write, so that the object records each increment and its author. A stamp identifies
 * one call, so that a call applied twice differs from two calls.
 */
async function countUp({ object, kube }: ReconcileContext): Promise<void> {
  const { id, epoch } = running();
  const mode = modeOf(object.metadata.name);
  const target = { namespace: config.namespace, name: hotObject(mode) };
  const stamp = `${object.metadata.name}.${epoch}`;
  let tries = 0;
  let count = 0;
  await kube.mutate(
    { type: ConfigMap, ...target },
    (draft) => {
      tries += 1;
      count = Number(draft.data?.["count"] ?? 0) + 1;
      draft.data ??= {};
      draft.data[stamp] = String(count);
      draft.data["count"] = String(count);
    },
    { strategy: mode === "fields" ? "fields" : "guarded" },
  );
  journal({ kind: "wrote", id, epoch, object: target.name, stamp, count, tries });
}

/** Waits, fails sometimes, and requeues once after a user request. */
async function plain({ signal, requeueAfter, triggers, object }: ReconcileContext) {
  const { id, epoch } = running();
  const [shortest, longest] = config.plainMs;
  const ms = shortest + Math.random() * (longest - shortest);
  // A zombie that ignores its signal and continues although its key was taken over.
  if (object.metadata.name.startsWith("deaf")) await sleepMs(ms);
  else await sleepMs(ms, signal);
  if (Math.random() < config.failing) throw new Error("random failure");
  if (!triggers.some(({ kind }) => kind === "cli")) return undefined;
  journal({ kind: "armed", id, epoch });
  return requeueAfter(200);
}

const real = createObjectLanes({
  redis,
  cluster: "default",
  prefix,
  processId: workerId,
  onError: (error) => log.debug({ err: error }, "object lane degraded, Redis unavailable"),
});
/** Disables lanes: only preconditions separate the writes of one object. */
const lanes: ObjectLanes = {
  enter: async (lane, ...how) =>
    lane.endsWith(`/${hotObject("guarded")}`)
      ? { carried: undefined, waitedMs: 0, leave: () => undefined }
      : await real.enter(lane, ...how),
  close: () => real.close(),
};
const history = createHistoryWriter({
  redis,
  prefix,
  cluster: "default",
  shards: 1,
  budgetBytes: 8 * 1_048_576,
  onError: (error) => log.debug({ err: error }, "history without Redis"),
});
const common = { concurrency: 8, backoff, agingTime: AGING_MS, loopProtection: "report" } as const;
const start = (): Promise<Engine> =>
  startEngine({
    controllers: [
      defineController({
        ...common,
        name: "counter",
        for: Counter,
        reconcile: (context) => journaled(() => countUp(context)),
      }),
      defineController({
        ...common,
        name: "plain",
        for: Plain,
        reconcile: (context) => journaled(() => plain(context)),
      }),
    ],
    client,
    lanes,
    history,
    queueFor: ({ name }) =>
      observed(
        createWorkQueue({
          redis,
          controller: name,
          cluster: "default",
          prefix,
          leaseMs: LEASE_MS,
          onError: (error) => log.debug({ err: error }, "queue connection error"),
        }),
      ),
    workerId,
    log,
    metrics: createMetrics({ version: "test" }),
    onWorkable: (listener) => guard.onWorkable(listener),
    installation: prefix,
    leaseNamespace: config.namespace,
    election: { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 500 },
  });
// As a worker does: it waits while the breaker is open, instead of exiting with the probe in flight.
const engine = await onceAdmitted(start, (error) => log.debug({ err: error }, "waiting to start"));
process.once("SIGTERM", () => {
  void (async () => {
    await engine.stop({ graceMs: 500 });
    lanes.close();
    await history.close();
    await client.close();
    await guard.close();
    process.exit(0);
  })();
});
const patched = process.env["FLEET_PATCH_APPLIED"] ?? "";
process.send?.({ kind: "ready", patched } satisfies FleetWord);
