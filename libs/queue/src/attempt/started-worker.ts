import { ensureError, KonvergeError, sleepMs } from "@konverge/core";
import type { Worker } from "bullmq";
import type { QueueWorker } from "../contract/work-queue.ts";
import type { JobRunner } from "./job-runner.ts";
import { AttemptCancelledError, type LeaseKeeper } from "./lease-keeper.ts";
import type { WorkerConnections } from "./queue-process.ts";

const DEFAULT_GRACE_MS = 30_000;
/** Time that aborted handlers have to return, in ms; the engine abandons them after 2 s. */
const ABORTED_GRACE_MS = 3_000;
/** Time limit of each closing step, in ms. */
const CLOSE_MS = 1_000;

export interface WorkerParts {
  readonly worker: Pick<Worker, "pause" | "resume" | "close">;
  readonly consumer: Pick<WorkerConnections, "redis" | "disconnect">;
  readonly runner: JobRunner;
  readonly keeper: LeaseKeeper;
  /** Ends the wait for jobs. */
  readonly stopWaiting: () => void;
  /** Background rounds, stopped once the runner is idle. */
  readonly pumps: readonly { stop(): Promise<void> }[];
  readonly leaseMs: number;
  readonly onError: (error: Error) => void;
}

/** A started worker of one queue: pauses, drains and closes its parts. */
export class StartedWorker implements QueueWorker {
  readonly #parts: WorkerParts;
  readonly #killed = Promise.withResolvers<void>();
  #stopping: Promise<void> | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  get active(): number {
    return this.#parts.runner.active;
  }

  get finished(): number {
    return this.#parts.runner.finished;
  }

  pause(): void {
    if (this.#stopping === undefined) this.#parts.worker.pause(true).catch(this.#fail);
  }

  resume(): void {
    if (this.#stopping === undefined) this.#parts.worker.resume().catch(this.#fail);
  }

  stop({ graceMs = DEFAULT_GRACE_MS }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#shutDown(graceMs);
    return this.#stopping;
  }

  kill(): Promise<void> {
    this.#killed.resolve();
    this.#stopping ??= this.#shutDown(0);
    return this.#stopping;
  }

  readonly #fail = (error: unknown): void => this.#parts.onError(ensureError(error));

  async #shutDown(graceMs: number): Promise<void> {
    const { worker, consumer, runner, keeper, pumps, leaseMs, onError } = this.#parts;
    const { redis } = consumer;
    runner.refuse();
    await this.#within(CLOSE_MS, worker.pause(true));
    await this.#within(graceMs, Promise.race([runner.idle(), this.#killed.promise]));
    if (runner.active > 0) {
      keeper.abortAll(new AttemptCancelledError("shutdown", "the worker is stopping"));
      await this.#within(ABORTED_GRACE_MS, runner.idle());
    }
    const rounds = [...pumps.map((pump) => pump.stop()), runner.settled(), redis.ping()];
    const answers = (await this.#within(CLOSE_MS, Promise.all(rounds))) && redis.status === "ready";
    this.#parts.stopWaiting();
    // Forced if a handler does not return: its key runs elsewhere once the lease has expired. Also forced while Redis is
    // unavailable: BullMQ would wait for its connection, and its timers would keep the process alive.
    await this.#within(CLOSE_MS, worker.close(runner.active > 0 || !answers));
    // BullMQ reports a failed attempt after it has put the job back; only then can a new event end its backoff.
    await this.#within(CLOSE_MS, runner.settled());
    if (answers) await this.#within(CLOSE_MS, runner.announceReturned());
    keeper.close();
    if (runner.active > 0) {
      const left = `${runner.active} attempts did not end; their keys run again after the lease of ${leaseMs} ms`;
      onError(new KonvergeError("cancelled", left));
    }
    consumer.disconnect();
  }

  /** Returns false if the call failed or took longer. */
  async #within(ms: number, pending: Promise<unknown>): Promise<boolean> {
    const timer = new AbortController();
    const late = sleepMs(ms, timer.signal).catch(() => undefined);
    try {
      return await Promise.race([pending.then(() => true), late.then(() => false)]);
    } catch (error) {
      this.#fail(error);
      return false;
    } finally {
      timer.abort();
    }
  }
}
