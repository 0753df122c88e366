import { hostname } from "node:os";
import { KonvergeError } from "@konverge/core";
import { createWorkQueue, joinWorkers, type QueueWorker, type WorkQueue } from "@konverge/queue";
import {
  closeRedis,
  openConsumer,
  openProducer,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import type { ChildStarter } from "./await-child.ts";
import type { ClusterAccess } from "./cluster-access.ts";
import type { AnyWorkflow, Workflow } from "./define-workflow.ts";
import { assertJson } from "./json-value.ts";
import { listRuns, type RunCursor, type RunFilter, type RunPage } from "./list-runs.ts";
import { createRedisRunStore } from "./redis-run-store.ts";
import { retryRun, type RetryRunOptions } from "./retry-run.ts";
import { runNames } from "./run-names.ts";
import { checkRunId, keyOfRun, queueOfWorkflow, type RunRef } from "./run-ref.ts";
import type {
  NewRun,
  OnExisting,
  RunCounts,
  RunGlance,
  RunStore,
  RunView,
  StepRecord,
  RunWarning,
} from "./run-store.ts";
import { startRunWorker } from "./run-worker.ts";
import {
  startWaitWatcher,
  type WaitWatcher,
  type WaitWatcherSettings,
} from "./waits/start-wait-watcher.ts";
import { createWaitIndex } from "./waits/wait-index.ts";
import { parseKindKey, type WaitedKind } from "./waits/wait-names.ts";

const DEFAULT_PREFIX = "konverge";
const DEFAULT_RETENTION_MS = 7 * 86_400_000;
const DEFAULT_CONCURRENCY = 16;
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;
/** Of an input, and of a signal's payload. */
const MAX_INPUT_BYTES = 64 * 1_024;

export interface WorkflowsOptions {
  readonly redis: RedisTarget;
  /** What the runs work on; part of all names. Default `default`. */
  readonly cluster?: string;
  /** First part of all names in Redis. Default `konverge`. */
  readonly prefix?: string;
  /** As in the queues of this cluster's controllers. Default 1. */
  readonly shards?: number;
  /** How long a run stays with a worker that says nothing, in ms. Default 10 s. The same in all processes. */
  readonly leaseMs?: number;
  /** How long a run is kept after its end, in ms. Default 7 days. The same in all processes. */
  readonly retentionMs?: number;
  /** Told what goes wrong in the background, such as a lost connection. Default: nobody. */
  readonly onError?: (error: Error) => void;
  /** Told when a run has reached half of a bound at which it fails: once for each run and bound. Default: nobody. */
  readonly onWarning?: (run: RunRef, warning: RunWarning) => void;
}

/** As much of a workflow as starts a run. Without its schema the worker is the first who checks the input. */
export type StartedWorkflow<I> = Pick<Workflow<I>, "name" | "version" | "input">;

export interface StartOptions {
  /** Names the run; starting it again answers the run that is there. Default: a UUID. */
  readonly id?: string;
  /** At most one run with this key goes on at a time, such as `rollout:team-a/web`. */
  readonly key?: string;
  /**
   * What happens when another run holds the key: answer that one (default), refuse, or cancel it and start when it has ended.
   */
  readonly onExisting?: OnExisting;
  /** Who starts it; kept in the run. */
  readonly by?: string;
}

export interface StartedRun {
  readonly id: string;
  /** False when the answer is a run that was there. */
  readonly created: boolean;
  /** Of one with this id that was there: since when, epoch ms by Redis's clock. */
  readonly createdAtMs?: number;
}

export interface SignalMessage {
  readonly payload?: unknown;
  /** The same id is delivered once. Default: a UUID. */
  readonly id?: string;
  /** Who sends it; kept in the journal. */
  readonly by?: string;
}

export interface RunWorkerSettings {
  readonly workflows: readonly AnyWorkflow[];
  /** Activations at once, of each workflow. Default 16. */
  readonly concurrency?: number;
  /** Where Kubernetes verbs go. Default: nowhere, and they are refused. */
  readonly clusters?: ClusterAccess;
  /** Unique per process. Default: made of host and process id. */
  readonly workerId?: string;
}

/** Starts, watches and steers runs, and runs them. */
export interface Workflows {
  /**
   * Resolves once Redis has the run and its first activation was asked for.
   * @throws KonvergeError `run_exists`, `invalid_request`, `redis_unavailable`
   */
  start<I>(
    workflow: StartedWorkflow<I>,
    input: NoInfer<I>,
    options?: StartOptions,
  ): Promise<StartedRun>;
  get(ref: RunRef): Promise<RunView | undefined>;
  /** Cheap enough to be asked ten times a second. */
  peek(ref: RunRef): Promise<RunGlance | undefined>;
  /** Newest first, of one or several workflows, as far as they fit the filter. */
  list(
    workflows: string | readonly string[],
    page?: { readonly limit?: number; readonly from?: RunCursor; readonly filter?: RunFilter },
  ): Promise<RunPage>;
  /** How many runs of a workflow stand how. */
  counts(workflow: string): Promise<RunCounts>;
  /** What is recorded of a run, in the order of recording. */
  steps(ref: RunRef): Promise<readonly (StepRecord & { readonly name: string })[]>;
  /** Stores a signal for a run that has not ended. @throws KonvergeError `not_found`, `run_ended`, `queue_full` */
  signal(ref: RunRef, name: string, message?: SignalMessage): Promise<void>;
  /** Orders the cancellation: the verb that the run is at throws, and what was done is undone. @throws as `signal` */
  cancel(ref: RunRef, order?: { readonly by?: string; readonly reason?: string }): Promise<void>;
  /**
   * Tries a run again that failed or was cancelled, and looks at a stuck one at once. Answers the run that goes on: another
   * one, unless `fromFailed` says that this one goes on behind what succeeded.
   * @throws KonvergeError `not_found`, `run_active`, `run_ended`, `run_exists`, `run_undone`
   */
  retry(ref: RunRef, options?: RetryRunOptions): Promise<RunRef>;
  work(settings: RunWorkerSettings): QueueWorker;
  /**
   * Wakes runs when objects change that they wait for (`w.waitFor`). Of all that do, the one that holds the Lease watches. Without
   * any, runs look at their objects every 30 s.
   */
  watch(settings: WaitWatcherSettings): WaitWatcher;
  /** What runs wait for, by kind, most first. */
  waitedKinds(): Promise<readonly (WaitedKind & { readonly waits: number })[]>;
  close(): Promise<void>;
}

/** Workflows of one cluster in one Redis. Connects in the background: a call waits for Redis up to a second. */
export function openWorkflows(options: WorkflowsOptions): Workflows {
  const { cluster = "default", prefix = DEFAULT_PREFIX } = options;
  const { retentionMs = DEFAULT_RETENTION_MS, onError = () => undefined } = options;
  const producer = openProducer(options.redis);
  producer.on("error", onError);
  const call = <T>(run: (redis: RedisClient) => Promise<T>) =>
    withRedis(producer, () => run(producer));
  const store = createRedisRunStore({ call, prefix, cluster, retentionMs });
  const waits = createWaitIndex(call, { prefix, cluster });
  const watchers = new Set<WaitWatcher>();
  const queues = new Map<string, WorkQueue>();
  const workers = new Set<QueueWorker>();
  const consumers = new Set<ReturnType<typeof openConsumer>>();

  const queueOf = (workflow: string): WorkQueue => {
    const known = queues.get(workflow);
    if (known !== undefined) return known;
    const { redis, shards, leaseMs } = options;
    const queue = createWorkQueue({
      redis,
      prefix,
      cluster,
      controller: queueOfWorkflow(workflow),
      ...(shards === undefined ? {} : { shards }),
      ...(leaseMs === undefined ? {} : { leaseMs }),
      onError,
    });
    queues.set(workflow, queue);
    return queue;
  };
  const wake = async (ref: RunRef, reason: string) => {
    await queueOf(ref.workflow).request(keyOfRun(ref, cluster), { kind: "signal", reason });
  };
  const startWith = async (runs: RunStore, run: NewRun): Promise<RunView | StartedRun> => {
    const started = await runs.start(run);
    switch (started.kind) {
      case "created":
        if (started.replaces !== undefined) {
          await wake({ workflow: run.workflow, id: started.replaces }, "superseded");
        }
        await wake(run, "start");
        return { id: run.id, created: true };
      case "exists":
        // Whoever created it may have died before it was asked for.
        if (started.run.status === "queued") await wake(run, "start");
        return started.run;
      case "attached":
        return { id: started.id, created: false };
      case "rejected":
        throw new KonvergeError(
          "run_exists",
          `run ${started.id} of "${run.workflow}" holds the key "${run.key}" and has not ended: wait for it, cancel it, or start with onExisting "attach" or "supersede"`,
        );
    }
  };
  const startChildWith = (runs: RunStore): ChildStarter => ({
    async start(run) {
      const started = await startWith(runs, run);
      return "status" in started ? started : undefined;
    },
    async cancel(ref, order) {
      if ((await runs.cancel(ref, order)) === "ordered") await wake(ref, "cancel");
    },
  });

  return {
    async start(workflow, input, { id = crypto.randomUUID(), key, onExisting, by } = {}) {
      checkRunId(id);
      if (key !== undefined) checkRunId(key);
      checkInput(workflow, input);
      const { name, version } = workflow;
      const started = await startWith(store, {
        workflow: name,
        id,
        version,
        input,
        ...(key === undefined ? {} : { key }),
        ...(onExisting === undefined ? {} : { onExisting }),
        ...(by === undefined ? {} : { by }),
      });
      return "status" in started
        ? { id, created: false, createdAtMs: started.createdAtMs }
        : started;
    },
    get: (ref) => store.get(ref),
    peek: (ref) => store.peek(ref),
    counts: (workflow) => store.counts(workflow),
    async list(workflows, { limit = DEFAULT_LISTED, ...page } = {}) {
      if (!(Number.isSafeInteger(limit) && limit > 0 && limit <= MAX_LISTED)) {
        throw new KonvergeError(
          "invalid_request",
          `limit is ${limit}; give a whole number from 1 to ${MAX_LISTED}`,
        );
      }
      const names = typeof workflows === "string" ? [workflows] : workflows;
      return await listRuns(store, names, { limit, ...page });
    },
    async steps(ref) {
      const steps = [...(await store.steps(ref))].map(([name, record]) => ({ name, ...record }));
      return steps.toSorted((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
    },
    async signal(ref, name, { payload, id = crypto.randomUUID(), by } = {}) {
      checkJson(payload, `the payload of signal "${name}"`);
      const stored = await store.signal(ref, {
        name,
        id,
        ...(payload === undefined ? {} : { payload }),
        ...(by === undefined ? {} : { by }),
      });
      switch (stored) {
        // The first one may have died before it asked for the run.
        case "stored":
        case "duplicate":
          return await wake(ref, "signal");
        case "full":
          throw new KonvergeError(
            "queue_full",
            `run ${ref.id} has too many signals that it did not take`,
          );
        case "ended":
        case "missing":
          throw refusal(ref, stored);
      }
    },
    async cancel(ref, order = {}) {
      const ordered = await store.cancel(ref, order);
      if (ordered !== "ordered") throw refusal(ref, ordered);
      await wake(ref, "cancel");
    },
    async retry(ref, retryOptions = {}) {
      const start = async (run: NewRun) => void (await startWith(store, run));
      const namesOf = (workflow: string) => runNames(prefix, cluster, workflow);
      return await retryRun({ store, call, namesOf, start, wake }, ref, retryOptions);
    },
    work({ workflows, concurrency = DEFAULT_CONCURRENCY, clusters, workerId = defaultWorkerId() }) {
      const consumer = openConsumer(options.redis, { gathersTurns: true });
      consumer.redis.on("error", onError);
      consumers.add(consumer);
      const own = createRedisRunStore({
        // Waits for Redis as long as it takes: a body that has run must have its record.
        call: (run) => run(consumer.redis),
        prefix,
        cluster,
        retentionMs,
      });
      const started = workflows.map((workflow) =>
        startRunWorker({
          store: own,
          queue: queueOf(workflow.name),
          workflow,
          wake,
          startChild: startChildWith(own),
          workerId,
          concurrency,
          ...(clusters === undefined ? {} : { clusters }),
          onError,
          ...(options.onWarning === undefined ? {} : { onWarning: options.onWarning }),
        }),
      );
      const worker = joinWorkers(started, async () => {
        workers.delete(worker);
        consumers.delete(consumer);
        await closeRedis(consumer.redis);
      });
      workers.add(worker);
      return worker;
    },
    watch(settings) {
      const started = startWaitWatcher({ ...settings, index: waits, wake, onError });
      const watcher: WaitWatcher = {
        async stop() {
          watchers.delete(watcher);
          await started.stop();
        },
      };
      watchers.add(watcher);
      return watcher;
    },
    async waitedKinds() {
      const kinds = await waits.kinds();
      const counted = kinds.map(async (kind) => ({
        ...parseKindKey(kind),
        waits: await waits.count(kind),
      }));
      return (await Promise.all(counted)).toSorted((one, other) => other.waits - one.waits);
    },
    async close() {
      await Promise.all([...watchers].map((watcher) => watcher.stop()));
      await Promise.all([...workers].map((worker) => worker.stop()));
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await closeRedis(producer);
    },
  };
}

function checkInput(workflow: StartedWorkflow<unknown>, input: unknown): void {
  const what = `the input of "${workflow.name}"`;
  checkJson(input, what);
  try {
    workflow.input?.parse(input);
  } catch (cause) {
    const { message } = cause as Error;
    throw new KonvergeError("invalid_request", `${what} does not fit its schema: ${message}`, {
      cause,
    });
  }
}

/** Plain JSON that is not too large. */
function checkJson(value: unknown, what: string): void {
  assertJson(value, what);
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (bytes <= MAX_INPUT_BYTES) return;
  throw new KonvergeError(
    "invalid_request",
    `${what} has ${bytes} bytes, at most ${MAX_INPUT_BYTES} are kept: give a reference in place of the data`,
  );
}

function refusal({ workflow, id }: RunRef, why: "ended" | "missing"): KonvergeError {
  return why === "ended"
    ? new KonvergeError("run_ended", `run ${id} of "${workflow}" has ended`)
    : new KonvergeError(
        "not_found",
        `there is no run ${id} of "${workflow}"; runs are kept for some days after their end`,
      );
}

function defaultWorkerId(): string {
  return `${hostname()}-${process.pid}`;
}
