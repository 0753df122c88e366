import { hostname } from "node:os";
import { defined, isEncoded, KonvergeError, type RunLimits } from "@konverge/core";
import { joinWorkers, type QueueWorker } from "@konverge/queue";
import {
  closeRedis,
  openConsumer,
  openProducer,
  withRedis,
  type RedisClient,
} from "@konverge/redis";
import {
  actOnRuns,
  countBulk,
  type BulkEffect,
  type BulkPorts,
  type BulkRequest,
  type CountRequest,
  type CountResult,
  type BulkResult,
} from "./bulk-actions.ts";
import { cancelRun } from "./execution/cancel-run.ts";
import { cancelEffectOf, type CancelEffect } from "./cancel-effect.ts";
import { checkRunLimits } from "./define/check-run-limits.ts";
import type { RunRef } from "./define/run-ref.ts";
import { requestRun } from "./request-run.ts";
import { pauseEffectOf, type PauseEffect } from "./pause-effect.ts";
import { startRunWorker } from "./execution/run-worker.ts";
import { terminateRun } from "./execution/terminate-run.ts";
import type { Schedule } from "./schedules/define-schedule.ts";
import { openSchedules, startDueRun, type ScheduleStarts } from "./schedules/open-schedules.ts";
import type { Schedules } from "./schedules/schedules.ts";
import { codedScheduleBook } from "./schedules/coded-schedule-book.ts";
import { createScheduleBook } from "./schedules/schedule-book.ts";
import { startScheduler, type Scheduler } from "./schedules/start-scheduler.ts";
import { withoutMessages } from "./journal/run-tracing.ts";
import type { Terminated } from "./store/run-actions.ts";
import { startRun } from "./store/start-run.ts";
import { createChildStarter } from "./create-child-starter.ts";
import { listRuns, type ListOptions, type RunPage } from "./store/list-runs.ts";
import { refusal } from "./store/run-refusal.ts";
import { sendSignal } from "./store/send-signal.ts";
import { withCodec } from "./codec/coded-run-store.ts";
import { createValueCodec, lenient } from "./codec/value-codec.ts";
import { createRedisRunStore } from "./store/redis-run-store.ts";
import type { KeptRuns, RedisRunStoreOptions } from "./store/redis-runs.ts";
import {
  inOrder,
  journalOf,
  type NamedRecord,
  type RunHistory,
  type JournalView,
} from "./store/run-history.ts";
import { retryRun, type RetryRunOptions, type RunRetrier } from "./store/retry-run.ts";
import type { RunCounts } from "./store/run-queries.ts";
import type {
  CancelRequest,
  RefusedSignals,
  LogLine,
  RunOverview,
  RunView,
  UnconsumedSignal,
} from "./store/run-record.ts";
import { updateSignal, updateSignalId, type UpdateAnswer } from "./store/run-updates.ts";
import type { RunStore } from "./store/run-store.ts";
import { readWithSpread } from "./store/spread-progress.ts";
import { parseKindKey, type WaitedKind } from "./store/wait-names.ts";
import {
  startWaitWatcher,
  type WaitWatcher,
  type WaitWatcherSettings,
} from "./waits/start-wait-watcher.ts";
import { createWaitIndex } from "./waits/wait-index.ts";
import { WorkflowQueues } from "./workflow-queues.ts";
import type {
  RunWorkerSettings,
  SignalMessage,
  StartedRun,
  StartedWorkflow,
  StartOptions,
  Workflows,
  WorkflowsOptions,
} from "./workflows.ts";

const DEFAULT_PREFIX = "konverge";
const DEFAULT_RETENTION_MS = 7 * 86_400_000;
const DEFAULT_LIMIT_BYTES = 256 * 1_048_576;
const DEFAULT_CONCURRENCY = 16;
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;

/** Opens the workflows of one cluster. Connects in the background; calls wait up to 1 s for Redis. */
export function openWorkflows(options: WorkflowsOptions): Workflows {
  return new RedisWorkflows(options);
}

class RedisWorkflows implements Workflows {
  readonly schedules: Schedules;
  readonly #options: WorkflowsOptions;
  readonly #place: { readonly prefix: string; readonly cluster: string };
  readonly #retentionMs: number;
  readonly #onError: (error: Error) => void;
  readonly #producer: RedisClient;
  readonly #call: RedisRunStoreOptions["call"];
  readonly #store: RunStore;
  readonly #queues: WorkflowQueues;
  readonly #waits: ReturnType<typeof createWaitIndex>;
  readonly #book: ReturnType<typeof createScheduleBook>;
  readonly #watchers = new Set<WaitWatcher>();
  readonly #schedulers = new Set<Scheduler>();
  readonly #workers = new Set<QueueWorker>();

  constructor(options: WorkflowsOptions) {
    const { redis, cluster = "default", prefix = DEFAULT_PREFIX, shards, leaseMs } = options;
    const { retentionMs = DEFAULT_RETENTION_MS, onError = () => undefined } = options;
    this.#options = options;
    this.#place = { prefix, cluster };
    this.#retentionMs = retentionMs;
    this.#onError = onError;
    const producer = openProducer(redis);
    producer.on("error", onError);
    this.#producer = producer;
    this.#call = (run) => withRedis(producer, () => run(producer));
    this.#store = this.#openStore(this.#call, { executes: false });
    this.#queues = new WorkflowQueues({
      redis,
      ...this.#place,
      ...defined({ shards, leaseMs, tracing: options.tracing, fence: options.fence }),
      onError,
    });
    this.#waits = createWaitIndex(this.#call, this.#place);
    this.#book = codedScheduleBook(createScheduleBook(this.#call, this.#place), options.codec);
    this.schedules = openSchedules(this.#book, this.#starts());
  }

  async start<I>(
    workflow: StartedWorkflow<I>,
    input: NoInfer<I>,
    options: StartOptions = {},
  ): Promise<StartedRun> {
    const { wake } = this.#queues;
    const traced: typeof wake = (ref, reason) => wake(ref, reason, options.traceparent);
    const plainInput = (ref: RunRef) => this.#plainInput(ref, input);
    return await requestRun({ store: this.#store, wake: traced, plainInput }, workflow, {
      ...options,
      input,
    });
  }

  /** Decodes an input that its sender has encoded; the stored one is decoded as well. */
  async #plainInput({ workflow, id: run }: RunRef, input: unknown): Promise<unknown> {
    const { codec } = this.#options;
    if (codec === undefined || !isEncoded(input)) return input;
    return await lenient(createValueCodec(codec)).decode(input, { workflow, run, kind: "input" });
  }

  get(ref: RunRef): Promise<RunView | undefined> {
    return this.#store.get(ref);
  }

  peek(ref: RunRef): Promise<RunOverview | undefined> {
    return this.#store.peek(ref);
  }

  counts(workflow: string): Promise<RunCounts> {
    return this.#store.counts(workflow);
  }

  async list(
    workflows: string | readonly string[],
    { limit = DEFAULT_LISTED, ...page }: Partial<ListOptions> = {},
  ): Promise<RunPage> {
    if (!(Number.isSafeInteger(limit) && limit > 0 && limit <= MAX_LISTED)) {
      throw new KonvergeError(
        "invalid_request",
        `limit must be an integer from 1 to ${MAX_LISTED} (got ${limit})`,
      );
    }
    const names = typeof workflows === "string" ? [workflows] : workflows;
    return await listRuns(this.#store, names, { limit, ...page });
  }

  async steps(ref: RunRef): Promise<readonly NamedRecord[]> {
    return inOrder(await this.#store.steps(ref));
  }

  async journal(ref: RunRef): Promise<JournalView> {
    return journalOf(await readWithSpread(this.#store, ref));
  }

  history(ref: RunRef): Promise<RunHistory | undefined> {
    return this.#store.history(ref);
  }

  unconsumedSignals(ref: RunRef): Promise<readonly UnconsumedSignal[]> {
    return this.#store.unconsumedSignals(ref);
  }

  refusedSignals(ref: RunRef): Promise<RefusedSignals> {
    return this.#store.refusedSignals(ref);
  }

  async signal(
    ref: RunRef,
    name: string,
    { payload, id = crypto.randomUUID(), by }: SignalMessage = {},
  ): Promise<void> {
    await sendSignal(this.#store, this.#queues.wake, ref, { name, id, payload, by });
  }

  async update(
    ref: RunRef,
    name: string,
    { payload, id = crypto.randomUUID(), by }: SignalMessage = {},
  ): Promise<{ readonly id: string }> {
    // A repeated request may come after the end of the run.
    if ((await this.answerTo(ref, id)) !== undefined) return { id };
    const message = { ...defined({ payload, by }), id: updateSignalId(id) };
    await this.signal(ref, updateSignal(name), message);
    return { id };
  }

  logs(ref: RunRef): Promise<readonly LogLine[]> {
    return this.#store.logs(ref);
  }

  answerTo(ref: RunRef, updateId: string): Promise<UpdateAnswer | undefined> {
    return this.#store.answerTo(ref, updateId);
  }

  async cancel(ref: RunRef, request: CancelRequest = {}): Promise<CancelEffect> {
    const { wake, notify } = this.#queues;
    const canceller = { store: this.#store, wake, notify };
    const { answer, run } = await cancelRun(canceller, ref, request, { resumes: true });
    if (answer === "ended" || answer === "missing") throw refusal(ref, answer);
    return cancelEffectOf(answer, run);
  }

  async pause(ref: RunRef, request: CancelRequest = {}): Promise<PauseEffect> {
    const [answer = "missing"] = await this.#store.pause(ref.workflow, [ref.id], { request });
    if (answer === "ended" || answer === "missing") throw refusal(ref, answer);
    // If the worker of its execution is lost, the next claim ends `pausing`.
    if (answer === "pausing") await this.#queues.wake(ref, "pause");
    return pauseEffectOf("pause", answer);
  }

  async resume(ref: RunRef): Promise<PauseEffect> {
    const [answer = "missing"] = await this.#store.resume(ref.workflow, [ref.id]);
    if (answer === "ended" || answer === "missing") throw refusal(ref, answer);
    // Also if the run was resumed before: that caller may have died before it requested the execution.
    await this.#queues.wake(ref, "resume");
    return pauseEffectOf("resume", answer);
  }

  async terminate(ref: RunRef, request: CancelRequest = {}): Promise<void> {
    const answer = await this.#terminate(ref, request);
    if (answer !== "terminated") throw refusal(ref, answer);
  }

  async raise(ref: RunRef, limits: RunLimits): Promise<void> {
    checkRunLimits(limits);
    const overview = await this.#store.peek(ref);
    if (limits.steps !== undefined && overview !== undefined && limits.steps < overview.steps) {
      throw lowLimit("steps", `the run has recorded ${overview.steps} steps`, limits.steps);
    }
    const answer = await this.#store.raise(ref, limits);
    if (answer === "low") throw await this.#belowPresent(ref, limits);
    if (answer !== "raised") throw refusal(ref, answer);
    await this.#queues.wake(ref, "raise");
  }

  async #belowPresent(ref: RunRef, limits: RunLimits): Promise<KonvergeError> {
    const present = (await this.#store.get(ref))?.limits ?? {};
    const field = (limits.steps ?? Infinity) < (present.steps ?? 0) ? "steps" : "bytes";
    return lowLimit(field, `the limit of the run is ${present[field]}`, limits[field]);
  }

  async retry(ref: RunRef, options: RetryRunOptions = {}): Promise<RunRef> {
    const { wake } = this.#queues;
    const retrier: RunRetrier = {
      store: this.#store,
      start: async (run) => void (await startRun(this.#store, wake, run)),
      wake,
    };
    return await retryRun(retrier, ref, options);
  }

  countMatching(workflows: readonly string[], request: CountRequest): Promise<CountResult> {
    return countBulk({ store: this.#store }, workflows, request);
  }

  actOnMatching(workflows: readonly string[], request: BulkRequest): Promise<BulkResult> {
    const { wake } = this.#queues;
    const { signal } = request;
    // One for all tries, so that a repeated call sends nothing.
    const sent = signal && { ...signal, id: signal.id ?? crypto.randomUUID() };
    const act: BulkPorts["act"] = (ref, how) => this.#act(ref, how, sent);
    return actOnRuns({ store: this.#store, wake, act }, workflows, request);
  }

  async #act(
    ref: RunRef,
    { action, by, reason, fromFailed = false, versions }: BulkRequest,
    signal: (NonNullable<BulkRequest["signal"]> & { readonly id: string }) | undefined,
  ): Promise<BulkEffect | void> {
    const author = defined({ by, reason });
    switch (action) {
      case "cancel":
      case "pause":
      case "terminate":
        return await this[action](ref, author);
      case "resume":
        return await this.resume(ref);
      case "retry":
        return void (await this.retry(ref, {
          ...author,
          fromFailed,
          ...defined({ version: versions?.get(ref.workflow) }),
        }));
      case "signal":
        if (signal === undefined) throw new KonvergeError("invalid_request", "signal is required");
        return (await sendSignal(this.#store, this.#queues.wake, ref, { ...signal, by })) ===
          "stored"
          ? { effect: "sent" }
          : { effect: "none" };
    }
  }

  work(settings: RunWorkerSettings): QueueWorker {
    const { workflows, concurrency = DEFAULT_CONCURRENCY, clusters, observer, limits } = settings;
    const { tracing } = this.#options;
    const { workerId = defaultWorkerId(), recordLimitBytes, recheckMs, sweepEveryMs } = settings;
    const { redis } = openConsumer(this.#options.redis, { gathersTurns: true });
    redis.on("error", this.#onError);
    // Waits for Redis without a limit: a body that has run must have its record.
    const call: RedisRunStoreOptions["call"] = (run) => run(redis);
    const store = this.#openStore(call, { executes: true, keptOf: this.#keptOf(workflows) });
    const { wake, abandon, notify, isObjectGone } = this.#queues;
    const started = workflows.map((workflow) =>
      startRunWorker({
        store,
        queue: this.#queues.of(workflow.name),
        workflow,
        wake,
        abandon,
        notify,
        isObjectGone,
        startChild: createChildStarter(store, { wake, notify }),
        workerId,
        concurrency,
        onError: this.#onError,
        ...defined({ clusters, observer, limits, recordLimitBytes, recheckMs, sweepEveryMs }),
        ...defined({
          onWarning: this.#options.onWarning,
          onLog: this.#options.onLog,
          tracing: this.#options.codec && tracing ? withoutMessages(tracing) : tracing,
        }),
      }),
    );
    const worker = joinWorkers(started, async () => {
      this.#workers.delete(worker);
      await closeRedis(redis);
    });
    this.#workers.add(worker);
    return worker;
  }

  watch(settings: WaitWatcherSettings): WaitWatcher {
    const { wake } = this.#queues;
    const index = this.#waits;
    const started = startWaitWatcher({ ...settings, index, wake, onError: this.#onError });
    const watcher: WaitWatcher = {
      stop: async (options) => {
        this.#watchers.delete(watcher);
        await started.stop(options);
      },
    };
    this.#watchers.add(watcher);
    return watcher;
  }

  schedule(schedules: readonly Schedule[]): Scheduler {
    const started = startScheduler({
      schedules,
      book: this.#book,
      ...defined({ mayStart: this.#options.mayStart }),
      start: async (schedule, id, scheduledAtMs) =>
        await startDueRun(this.#starts(), schedule, { id, scheduledAtMs }),
      onError: this.#onError,
    });
    const scheduler: Scheduler = {
      stop: async () => {
        this.#schedulers.delete(scheduler);
        await started.stop();
      },
    };
    this.#schedulers.add(scheduler);
    return scheduler;
  }

  async waitedKinds(): Promise<readonly (WaitedKind & { readonly waits: number })[]> {
    const kinds = await this.#waits.kinds();
    const counted = kinds.map(async (kind) => ({
      ...parseKindKey(kind),
      waits: await this.#waits.count(kind),
    }));
    return (await Promise.all(counted)).toSorted((one, other) => other.waits - one.waits);
  }

  #openStore(
    call: RedisRunStoreOptions["call"],
    { executes, keptOf }: { executes: boolean; keptOf?: RedisRunStoreOptions["keptOf"] },
  ): RunStore {
    const retentionMs = this.#retentionMs;
    const place = { ...this.#place, retentionMs, ...defined({ keptOf }) };
    return withCodec(createRedisRunStore({ call, ...place }), {
      codec: this.#options.codec,
      executes,
    });
  }

  #keptOf(workflows: RunWorkerSettings["workflows"]): (workflow: string) => KeptRuns | undefined {
    const { limitBytes = DEFAULT_LIMIT_BYTES } = this.#options;
    const kept = new Map(
      workflows.map(({ name, retention }) => [
        name,
        {
          limitBytes: retention?.bytes ?? limitBytes,
          ...defined({ retentionMs: retention?.timeMs }),
        },
      ]),
    );
    return (workflow) => kept.get(workflow);
  }

  #starts(): ScheduleStarts {
    const { wake } = this.#queues;
    const terminate: ScheduleStarts["terminate"] = async (ref, request) =>
      void (await this.#terminate(ref, request));
    return { store: this.#store, wake, terminate };
  }

  async #terminate(ref: RunRef, request: CancelRequest): Promise<Terminated["kind"]> {
    const { wake, notify } = this.#queues;
    return await terminateRun({ store: this.#store, wake, notify }, ref, request);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watchers, ...this.#schedulers].map((each) => each.stop()));
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.#queues.close();
    await closeRedis(this.#producer);
  }
}

function lowLimit(
  field: keyof RunLimits,
  present: string,
  given: number | undefined,
): KonvergeError {
  const detail = `${field} would change nothing: ${present} (got ${given}); pass a higher limit`;
  return new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: `/${field}`, detail }],
  });
}

function defaultWorkerId(): string {
  return `${hostname()}-${process.pid}`;
}
