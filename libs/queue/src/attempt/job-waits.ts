import { ensureError, sleepMs } from "@konverge/core";
import type { RedisClient } from "@konverge/redis";
import type { Redis } from "ioredis";

/** An entry of BullMQ's marker set: 0, or the time when a delayed job is due. */
interface Marker {
  readonly member: string;
  readonly score: number;
}

/** The wait of one worker for jobs of its queue. */
export interface JobWait {
  /** Returns undefined after the timeout, and when the connection breaks: the worker then looks for jobs itself. */
  wait(timeoutMs: number): Promise<Marker | undefined>;
  /** Ends the wait; the worker does not look for jobs. */
  cancel(): void;
}

/** For BullMQ's worker: no job is due. */
const CANCELLED: Marker = { member: "", score: Infinity };

export interface JobWaitsOptions {
  /** Opens the connection that blocks. */
  readonly open: () => Redis;
  /** For other commands. */
  readonly redis: RedisClient;
  readonly onError: (error: Error) => void;
}

/** Shortest and longest time that a command blocks, and longest time if it cannot be interrupted, in ms. */
const [SHORTEST_MS, LONGEST_MS, UNINTERRUPTED_MS] = [2, 10_000, 200];
/** How much later than its timeout an answer may arrive, in ms. */
const LATE_MS = 1_000;
/** First pause after an interruption that arrived before the command that it interrupts, in ms. Each is twice the last. */
const AGAIN_MS = 1;
const AFTER_ERROR_MS = 50;
/** Interruptions without an effect after which the connection is opened again: it may lead to another server. */
const MAX_INTERRUPTIONS = 12;

interface Waiting {
  readonly marker: string;
  readonly untilMs: number;
  readonly settle: (found: Marker | undefined) => void;
}

/** A command that blocks. */
interface Blocked {
  readonly id: number;
  readonly markers: ReadonlySet<string>;
  readonly untilMs: number;
  isInterrupted: boolean;
}

/**
 * Waits for the jobs of all workers of a process with one connection and one command, where BullMQ's workers have one each. The
 * command names the markers of all queues whose workers wait. A worker that begins to wait for another queue, or less
 * long, interrupts it.
 *
 * Only for one server: the keys of several shards are on several nodes of a Redis Cluster.
 */
export class JobWaits {
  readonly #options: JobWaitsOptions;
  readonly #waiting = new Set<Waiting>();
  #redis: Redis | undefined;
  #clientId: number | undefined;
  #blocked: Blocked | undefined;
  #isRunning = false;
  #canInterrupt = true;
  #isClosed = false;

  constructor(options: JobWaitsOptions) {
    this.#options = options;
  }

  /** `marker`: the name of the queue's marker set. */
  open(marker: string): JobWait {
    const own = new Set<Waiting>();
    return {
      wait: (timeoutMs) =>
        new Promise((resolve) => {
          if (this.#isClosed) {
            resolve(undefined);
            return;
          }
          const settle = (found: Marker | undefined) => {
            this.#waiting.delete(waiting);
            own.delete(waiting);
            resolve(found);
          };
          const waiting = { marker, untilMs: performance.now() + timeoutMs, settle };
          own.add(waiting);
          this.#waiting.add(waiting);
          this.#follow();
        }),
      cancel: () => {
        for (const { settle } of own) settle(CANCELLED);
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#settleAll();
    this.#redis?.disconnect();
  }

  /** Starts the command, or a new one with another marker. */
  #follow(): void {
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#run();
      return;
    }
    const blocked = this.#blocked;
    if (blocked === undefined || blocked.isInterrupted) return;
    const isCovered = ({ marker, untilMs }: Waiting) =>
      blocked.markers.has(marker) && untilMs + SHORTEST_MS >= blocked.untilMs;
    if ([...this.#waiting].every(isCovered)) return;
    blocked.isInterrupted = true;
    void this.#interrupt(blocked);
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#isClosed) {
      try {
        await this.#block();
      } catch (error) {
        // Each worker then looks for jobs with the other connection, which waits for Redis.
        await this.#recover(error);
        this.#settleAll();
      }
    }
    this.#isRunning = false;
  }

  async #block(): Promise<void> {
    const redis = (this.#redis ??= this.#connect());
    const id = this.#canInterrupt ? await this.#identify(redis) : 0;
    const markers = [...new Set([...this.#waiting].map(({ marker }) => marker))];
    if (markers.length === 0) return;
    const leftMs =
      Math.min(...[...this.#waiting].map(({ untilMs }) => untilMs)) - performance.now();
    const mostMs = this.#canInterrupt ? LONGEST_MS : UNINTERRUPTED_MS;
    const waitMs = Math.max(SHORTEST_MS, Math.min(leftMs, mostMs));
    const untilMs = performance.now() + waitMs;
    const blocked = { id, markers: new Set(markers), untilMs, isInterrupted: false };
    this.#blocked = blocked;
    try {
      const found = await within(redis.bzpopmin(...markers, waitMs / 1_000), waitMs + LATE_MS);
      if (found !== null) this.#handOut(found);
    } finally {
      this.#blocked = undefined;
    }
    this.#expire();
  }

  /** Returns the id of the connection, by which it can be interrupted. */
  async #identify(redis: Redis): Promise<number> {
    try {
      return (this.#clientId ??= await within(redis.client("ID"), LATE_MS));
    } catch (error) {
      if (!isRejection(error)) throw error;
      this.#giveUpInterrupting(error);
      return 0;
    }
  }

  #giveUpInterrupting(error: unknown): void {
    if (!this.#canInterrupt) return;
    this.#canInterrupt = false;
    this.#options.onError(ensureError(error));
  }

  /** A connection that broke reports its own error and opens again. */
  async #recover(error: unknown): Promise<void> {
    if (this.#isClosed || this.#redis?.status !== "ready") return;
    if (error instanceof LateError) {
      this.#redis.disconnect(true);
      return;
    }
    this.#options.onError(ensureError(error));
    await sleepMs(AFTER_ERROR_MS);
  }

  #connect(): Redis {
    const redis = this.#options.open();
    redis.on("close", () => {
      this.#clientId = undefined;
    });
    return redis;
  }

  #handOut([marker, member, score]: [string, string, string]): void {
    for (const waiting of this.#waiting) {
      if (waiting.marker !== marker) continue;
      waiting.settle({ member, score: Number(score) });
      return;
    }
    // Its worker has stopped waiting: the marker is for another one.
    const { redis, onError } = this.#options;
    redis.zadd(marker, score, member).catch((error: unknown) => onError(ensureError(error)));
  }

  #expire(): void {
    const nowMs = performance.now();
    for (const waiting of this.#waiting) {
      if (waiting.untilMs <= nowMs) waiting.settle(undefined);
    }
  }

  #settleAll(): void {
    for (const { settle } of this.#waiting) settle(undefined);
  }

  /** Another connection may be faster than the command that blocks, so the interruption is repeated until that has ended. */
  async #interrupt(blocked: Blocked): Promise<void> {
    const { redis } = this.#options;
    let pauseMs = AGAIN_MS;
    for (let times = 1; this.#blocked === blocked && this.#canInterrupt; times += 1) {
      try {
        if (redis.status === "ready") await redis.call("CLIENT", "UNBLOCK", blocked.id);
      } catch (error) {
        if (isRejection(error)) this.#giveUpInterrupting(error);
      }
      await sleepMs(pauseMs);
      pauseMs = Math.min(2 * pauseMs, AFTER_ERROR_MS);
      if (times < MAX_INTERRUPTIONS || this.#blocked !== blocked) continue;
      if (this.#redis?.status === "ready") this.#redis.disconnect(true);
      return;
    }
  }
}

/** True if Redis rejects a command whatever its state, for example because the user or the provider does not permit it. */
function isRejection(error: unknown): boolean {
  return (
    error instanceof Error && error.name === "ReplyError" && /^(NOPERM|ERR) /.test(error.message)
  );
}

class LateError extends Error {}

/** @throws LateError */
async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const giveUp = () => late.reject(new LateError(`no answer of Redis within ${Math.round(ms)} ms`));
  // After a stall of this process, timers run before the sockets are read: an answer that has arrived still counts.
  const timer = setTimeout(() => setImmediate(giveUp), ms);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
