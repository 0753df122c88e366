import { hostname } from "node:os";
import { defined, formatKey, KonvergeError, parseKey } from "@konverge/core";
import { createWorkQueue, joinWorkers, type QueueWorker, type WorkQueue } from "@konverge/queue";
import {
  closeRedis,
  openConsumer,
  openProducer,
  withRedis,
  type RedisClient,
} from "@konverge/redis";
import type { ChildStarter } from "./execution/await-child.ts";
import { assertJson } from "./define/json-value.ts";
import { listRuns } from "./store/list-runs.ts";
import { createRedisRunStore } from "./store/redis-run-store.ts";
import { retryRun } from "./store/retry-run.ts";
import { runNames } from "./store/run-names.ts";
import {
  checkRunId,
  formatRunId,
  keyOfRun,
  queueOfWorkflow,
  type RunRef,
} from "./define/run-ref.ts";
import type { NewRun } from "./store/run-actions.ts";
import type { RunStore } from "./store/run-store.ts";
import type { RunView } from "./store/run-record.ts";
import { startRunWorker } from "./execution/run-worker.ts";
import { schemaRefusal } from "./define/schema-refusal.ts";
import { createScheduleBook } from "./schedules/schedule-book.ts";
import { startScheduler, type Scheduler } from "./schedules/start-scheduler.ts";
import { startWaitWatcher, type WaitWatcher } from "./waits/start-wait-watcher.ts";
import { createWaitIndex } from "./waits/wait-index.ts";
import { parseKindKey } from "./store/wait-names.ts";
import type { StartedRun, StartedWorkflow, Workflows, WorkflowsOptions } from "./workflows.ts";

const DEFAULT_PREFIX = "konverge";
const DEFAULT_RETENTION_MS = 7 * 86_400_000;
const DEFAULT_CONCURRENCY = 16;
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;
/** Of an input, and of a signal's payload. */
const MAX_INPUT_BYTES = 64 * 1_024;

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
  const book = createScheduleBook(call, { prefix, cluster });
  const schedulers = new Set<Scheduler>();
  const queues = new Map<string, WorkQueue>();
  const workers = new Set<QueueWorker>();
  const consumers = new Set<ReturnType<typeof openConsumer>>();

  const queueOf = (controller: string): WorkQueue => {
    const known = queues.get(controller);
    if (known !== undefined) return known;
    const { redis, shards, leaseMs } = options;
    const queue = createWorkQueue({
      redis,
      prefix,
      cluster,
      controller,
      ...defined({ shards, leaseMs }),
      onError,
    });
    queues.set(controller, queue);
    return queue;
  };
  const wake = async (ref: RunRef, reason: string) => {
    const queue = queueOf(queueOfWorkflow(ref.workflow));
    await queue.request(keyOfRun(ref, cluster), { kind: "signal", reason });
  };
  const notify = async (text: string, ref: RunRef) => {
    const key = parseKey(text);
    const by = `run ${formatRunId(ref, cluster)}`;
    const trigger = { kind: "signal", by, reason: "the run has ended" } as const;
    await queueOf(key.controller).request(key, trigger);
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
    async cancel(ref, request) {
      if ((await runs.cancel(ref, request)) === "requested") await wake(ref, "cancel");
    },
  });

  const start: Workflows["start"] = async (workflow, input, startOptions = {}) => {
    const { id = crypto.randomUUID(), key, onExisting, by, origin, notify: ended } = startOptions;
    checkRunId(id);
    if (key !== undefined) checkRunId(key);
    checkInput(workflow, input);
    const { name, version } = workflow;
    const started = await startWith(store, {
      workflow: name,
      id,
      version,
      input,
      ...defined({ key, onExisting, by, origin }),
      ...(ended === undefined ? {} : { notify: formatKey(ended) }),
    });
    return "status" in started ? { id, created: false, createdAtMs: started.createdAtMs } : started;
  };

  return {
    start,
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
    unconsumedSignals: (ref) => store.unconsumedSignals(ref),
    async signal(ref, name, { payload, id = crypto.randomUUID(), by } = {}) {
      checkJson(payload, `the payload of signal "${name}"`);
      const stored = await store.signal(ref, {
        name,
        id,
        ...defined({ payload, by }),
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
    async cancel(ref, request = {}) {
      const requested = await store.cancel(ref, request);
      if (requested !== "requested") throw refusal(ref, requested);
      await wake(ref, "cancel");
    },
    async retry(ref, retryOptions = {}) {
      const begin = async (run: NewRun) => void (await startWith(store, run));
      const namesOf = (workflow: string) => runNames(prefix, cluster, workflow);
      return await retryRun({ store, call, namesOf, start: begin, wake }, ref, retryOptions);
    },
    work({
      workflows,
      concurrency = DEFAULT_CONCURRENCY,
      clusters,
      observer,
      workerId = defaultWorkerId(),
    }) {
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
          queue: queueOf(queueOfWorkflow(workflow.name)),
          workflow,
          wake,
          notify,
          startChild: startChildWith(own),
          workerId,
          concurrency,
          ...defined({ clusters }),
          onError,
          ...defined({ observer, onWarning: options.onWarning }),
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
        async stop(stopOptions) {
          watchers.delete(watcher);
          await started.stop(stopOptions);
        },
      };
      watchers.add(watcher);
      return watcher;
    },
    schedule(due) {
      const started = startScheduler({
        schedules: due,
        book,
        start: async ({ name, workflow, input, onExisting }, id) => {
          const key = `schedule/${name}`;
          const by = `schedule ${name}`;
          return (await start(workflow, input, { id, key, onExisting, by })).id;
        },
        onError,
      });
      const scheduler: Scheduler = {
        async stop() {
          schedulers.delete(scheduler);
          await started.stop();
        },
      };
      schedulers.add(scheduler);
      return scheduler;
    },
    schedules: () => book.list(),
    async waitedKinds() {
      const kinds = await waits.kinds();
      const counted = kinds.map(async (kind) => ({
        ...parseKindKey(kind),
        waits: await waits.count(kind),
      }));
      return (await Promise.all(counted)).toSorted((one, other) => other.waits - one.waits);
    },
    async close() {
      await Promise.all([...watchers, ...schedulers].map((each) => each.stop()));
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
    const detail = `${what} does not fit its schema: ${schemaRefusal(cause)}`;
    throw new KonvergeError("invalid_request", detail, { cause });
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
