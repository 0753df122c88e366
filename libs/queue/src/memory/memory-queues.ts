import {
  conflictBackoff,
  defined,
  ensureError,
  failureBackoff,
  formatKey,
  KonvergeError,
  rejectedBackoff,
  type ObjectKey,
  type Outcome,
  type Trigger,
} from "@konverge/core";
import { planEnd } from "../attempt/end-plan.ts";
import { AttemptCancelledError } from "../attempt/lease-keeper.ts";
import type {
  AttemptEnd,
  AttemptLease,
  QueueWorker,
  RequestOptions,
  WorkOptions,
  WorkQueue,
} from "../contract/work-queue.ts";
import { formatRequestId } from "../keys/request-id.ts";
import { MemoryKey, type MemoryRun } from "./memory-key.ts";

/** A process of a simulation. */
export interface MemoryProcess {
  readonly name: string;
  /** Undefined while it runs; the time since which it is dead or suspended otherwise. */
  readonly silentSinceMs: () => number | undefined;
  /** Runs a function in the process after a delay: later if it is suspended then, never if it is dead. */
  readonly after: (ms: number, run: () => void) => void;
  /** Runs an attempt, so that its calls can be distinguished from others of the process. */
  readonly attempt: (attempt: AttemptLease, run: () => Promise<void>) => void;
}

/** Time and place of the queue itself. */
export interface MemoryQueueOptions {
  readonly cluster: string;
  readonly now: () => number;
  readonly after: (ms: number, run: () => void) => void;
  readonly random: () => number;
  readonly observe: (event: MemoryQueueEvent) => void;
}

/** An event of an attempt. */
export type MemoryQueueEvent =
  | { readonly kind: "began"; readonly attempt: AttemptLease; readonly process: string }
  | {
      readonly kind: "ended";
      readonly attempt: AttemptLease;
      readonly process: string;
      readonly outcome: Outcome;
      readonly isFenced: boolean;
      readonly nextInMs: number | undefined;
    }
  | {
      readonly kind: "lost";
      readonly id: string;
      readonly epoch: number;
      readonly process: string;
      readonly isDead: boolean;
    };

interface Consumer {
  readonly queue: MemoryQueue;
  readonly process: MemoryProcess;
  readonly work: WorkOptions;
  active: number;
  finished: number;
  isPaused: boolean;
}

const LEASE_MS = 10_000;
/** Delay between a request and its attempt, in ms. */
const BEGIN_MS = 1;

/**
 * The queues of all controllers in memory, for simulations: the same leases, epochs, coalescing, backoffs, timers and dead
 * letters as in Redis. Order, fairness between namespaces, pauses and cancellation are left out.
 */
export class MemoryQueues {
  readonly #options: MemoryQueueOptions;
  readonly #queues = new Map<string, MemoryQueue>();

  constructor(options: MemoryQueueOptions) {
    this.#options = options;
  }

  /** Opens the queue of a controller for a process. */
  open(controller: string, process: MemoryProcess): WorkQueue {
    const queue = this.#queues.get(controller) ?? new MemoryQueue(controller, this.#options);
    this.#queues.set(controller, queue);
    return queue.open(process);
  }

  /** All keys, in the order of their first requests. */
  keys(): MemoryKey[] {
    return [...this.#queues.values()].flatMap((queue) => [...queue.keys.values()]);
  }
}

/** The queue of one controller. */
class MemoryQueue {
  readonly keys = new Map<string, MemoryKey>();
  readonly #controller: string;
  readonly #options: MemoryQueueOptions;
  readonly #consumers = new Set<Consumer>();
  #progress: string | undefined;
  #turn = 0;

  constructor(controller: string, options: MemoryQueueOptions) {
    this.#controller = controller;
    this.#options = options;
  }

  open(process: MemoryProcess): WorkQueue {
    const controller = this.#controller;
    const { cluster, now } = this.#options;
    const request: WorkQueue["request"] = async (key, trigger, options = {}) => {
      const id = formatKey(key);
      const before = this.keys.get(id)?.ask !== undefined;
      const number = this.#request(key, trigger, options);
      return { id: formatRequestId(id, number), key: id, number, coalesced: before };
    };
    const own = new Set<Consumer>();
    const missing = () =>
      Promise.reject(
        new KonvergeError("invalid_request", "the queue of a simulation does not have this call"),
      );
    return {
      controller,
      cluster,
      control: new Proxy({} as WorkQueue["control"], { get: () => missing }),
      request,
      submit: async (key, trigger, options) => void (await request(key, trigger, options)),
      requestMany: (items) =>
        Promise.all(
          items.map(async ({ key, trigger, options }) => ({
            kind: "accepted" as const,
            accepted: await request(key, trigger, options),
          })),
        ),
      requestAt: async (key, atMs) => this.#arm(this.#keyOf(key), atMs - now()),
      getRequest: missing,
      getKey: missing,
      waitingRequests: async (keys) =>
        keys.map((key) => {
          const state = this.keys.get(formatKey(key));
          return state?.ask === undefined ? 0 : state.number;
        }),
      abandon: async () => false,
      listAttempts: async () => [],
      runningLog: async () => undefined,
      listKeys: () => this.#listKeys(),
      counts: async () => ({ waiting: 0, active: 0, delayed: 0 }),
      backlog: async () => ({
        keys: this.keys.size,
        deadLettered: 0,
        paused: 0,
        headAgeMs: 0,
        changeAgeMs: 0,
      }),
      incarnation: async () => "memory",
      accepted: async () => undefined,
      readProgress: async () => this.#progress,
      writeProgress: async (text) => void (this.#progress = text),
      work: (work) => this.#work(process, work, own),
      close: async () => void [...own].map((consumer) => this.#consumers.delete(consumer)),
    };
  }

  async *#listKeys(): AsyncGenerator<readonly ObjectKey[]> {
    yield [...this.keys.values()].map(({ key }) => key);
  }

  #keyOf(key: ObjectKey): MemoryKey {
    const id = formatKey(key);
    const state = this.keys.get(id) ?? new MemoryKey(key, id);
    this.keys.set(id, state);
    return state;
  }

  #request(key: ObjectKey, trigger: Trigger, options: RequestOptions): number {
    const number = this.#keyOf(key).request(trigger, options, this.#options.now());
    this.#pump();
    return number;
  }

  #work(process: MemoryProcess, work: WorkOptions, own: Set<Consumer>): QueueWorker {
    const consumer: Consumer = {
      queue: this,
      process,
      work,
      active: 0,
      finished: 0,
      isPaused: false,
    };
    own.add(consumer);
    this.#consumers.add(consumer);
    this.#pump();
    const stop = async () => void this.#consumers.delete(consumer);
    return {
      get active() {
        return consumer.active;
      },
      get finished() {
        return consumer.finished;
      },
      pause: () => void (consumer.isPaused = true),
      resume: () => {
        consumer.isPaused = false;
        this.#pump();
      },
      stop,
      kill: stop,
    };
  }

  /** Hands out due keys after a moment, the most urgent first. */
  #pump(): void {
    const { now, after } = this.#options;
    const waiting = [...this.keys.values()].filter((state) => state.isDue(now()));
    for (const state of waiting.toSorted((a, b) => a.rank - b.rank)) {
      const consumer = this.#free();
      if (consumer === undefined) return;
      const { work, process } = consumer;
      const run = state.begin(work.workerId, now());
      consumer.active += 1;
      after(LEASE_MS, () => this.#checkLease(consumer, state, run));
      process.after(BEGIN_MS, () => this.#run(consumer, state, run));
    }
  }

  #free(): Consumer | undefined {
    const free = [...this.#consumers].filter(
      ({ process, work, active, isPaused }) =>
        !isPaused &&
        process.silentSinceMs() === undefined &&
        active < (work.concurrency ?? Infinity),
    );
    this.#turn += 1;
    return free[this.#turn % free.length];
  }

  #run(consumer: Consumer, state: MemoryKey, run: MemoryRun): void {
    const { process, work } = consumer;
    const controller = new AbortController();
    const { signal } = controller;
    // Checked by the process itself: after a suspension, code runs before the lease is found lost.
    const checkExpiry = () => {
      if (state.run === run || signal.aborted) return;
      controller.abort(
        new AttemptCancelledError("leaseLost", `lease of ${state.id} lost: not renewed`),
      );
    };
    const attempt: AttemptLease = {
      ...state.leaseOf(run),
      signal,
      checkExpiry,
      keepLog: async () => undefined,
    };
    this.#abortWhenLost.set(run, () => process.after(0, checkExpiry));
    this.#options.observe({ kind: "began", attempt, process: process.name });
    process.attempt(attempt, async () => {
      const end = await this.#handle(work, attempt);
      this.#end(consumer, { state, run, attempt, end });
    });
  }

  readonly #abortWhenLost = new Map<MemoryRun, () => void>();

  async #handle(work: WorkOptions, attempt: AttemptLease): Promise<AttemptEnd> {
    try {
      return await work.handle(attempt);
    } catch (error) {
      work.onError(ensureError(error));
      return { outcome: { kind: "retry", error: ensureError(error) } };
    }
  }

  #end(
    consumer: Consumer,
    {
      state,
      run,
      attempt,
      end,
    }: {
      readonly state: MemoryKey;
      readonly run: MemoryRun;
      readonly attempt: AttemptLease;
      readonly end: AttemptEnd;
    },
  ): void {
    const { work, process } = consumer;
    // A process that died meanwhile cannot store anything.
    const silent = process.silentSinceMs();
    if (silent !== undefined) {
      process.after(0, () => this.#end(consumer, { state, run, attempt, end }));
      return;
    }
    const { now, random } = this.#options;
    const { outcome } = end;
    const plan = planEnd(outcome, run, {
      backoffs: backoffsOf(work),
      maxFailures: work.maxFailures ?? Infinity,
      random,
    });
    const isFenced = !state.end(run, plan, outcome.kind, now());
    this.#abortWhenLost.delete(run);
    consumer.active -= 1;
    consumer.finished += 1;
    const waits = !isFenced && !plan.final;
    const nextInMs = isFenced ? undefined : waits ? plan.delayMs : plan.timerMs;
    this.#options.observe({
      kind: "ended",
      attempt,
      process: process.name,
      outcome,
      isFenced,
      nextInMs,
    });
    if (typeof end.record === "function") end.record(plan.delayMs);
    const retryAfterMs = waits ? plan.delayMs : undefined;
    work.onClosed?.(attempt, end, { fenced: isFenced, ...defined({ retryAfterMs }) });
    if (isFenced) return;
    if (plan.timerMs !== undefined) this.#arm(state, plan.timerMs);
    if (state.hold !== "") this.#options.after(state.nextAtMs - now(), () => this.#pump());
    this.#pump();
  }

  #arm(state: MemoryKey, ms: number): void {
    const { now, after } = this.#options;
    const atMs = now() + Math.round(ms);
    state.timerAtMs = Math.min(state.timerAtMs ?? Infinity, atMs);
    after(atMs - now(), () => {
      if (state.timerAtMs === undefined || state.timerAtMs > now()) return;
      state.timerAtMs = undefined;
      this.#request(state.key, { kind: "schedule", by: "timer" }, { class: "event", news: false });
    });
  }

  /** Responsive processes renew the leases of their attempts. */
  #checkLease(consumer: Consumer, state: MemoryKey, run: MemoryRun): void {
    if (state.run !== run) return;
    const { after, now, observe, random } = this.#options;
    const { process, work } = consumer;
    const endsAtMs = (process.silentSinceMs() ?? now()) + LEASE_MS;
    if (endsAtMs > now()) {
      after(endsAtMs - now(), () => this.#checkLease(consumer, state, run));
      return;
    }
    const { failure } = backoffsOf(work);
    const consecutive = state.lose({ maxLost: work.maxLost ?? Infinity, failure, random }, now());
    const { id } = state;
    observe({ kind: "lost", id, epoch: run.epoch, process: process.name, isDead: state.isDead });
    this.#abortWhenLost.get(run)?.();
    this.#abortWhenLost.delete(run);
    for (const { process: other, work: notified } of this.#consumers) {
      if (other === process) continue;
      notified.onLost?.({ id, consecutive, isIndexed: false });
    }
    if (state.hold !== "") after(state.nextAtMs - now(), () => this.#pump());
    this.#pump();
  }
}

function backoffsOf({ backoffs }: WorkOptions): NonNullable<WorkOptions["backoffs"]> {
  return (
    backoffs ?? { conflict: conflictBackoff, failure: failureBackoff, rejected: rejectedBackoff }
  );
}
