import { ensureError, sleepMs, type Trigger } from "@konverge/core";
import type { Controller } from "../define/define-controller.ts";
import type { WatchedObjects } from "../access/object-store.ts";
import { insist, untilLost } from "../sources/redis-loss.ts";
import type { LeaderProgress } from "./leader-progress.ts";
import type { RequestSource } from "./request-source.ts";

export interface ResyncOptions {
  readonly controller: Controller;
  readonly store: WatchedObjects;
  readonly source: RequestSource;
  /** Versions that this process's watches of owned and watched kinds have reached for a namespace. */
  readonly seen: (namespace: string | undefined) => NonNullable<Trigger["seen"]>;
  /** Differs after Redis may have lost requests. */
  readonly incarnation: () => Promise<string>;
  /** Continues where the last leader stopped. Default: a new leader enqueues every object. */
  readonly progress?: LeaderProgress | undefined;
  readonly signal: AbortSignal;
  /** Receives the error of each failed check for data loss before a round. */
  readonly onError: (error: Error) => void;
  /**
   * Enqueues the keys whose object does not exist. Called when a new leader enqueues every object, and when Redis may have lost
   * requests: a restored backup has keys of objects that were deleted since. Rejects only at the end of the leadership.
   */
  readonly sweep?: () => Promise<void>;
  /** Called if Redis may have lost requests, before they are repeated. */
  readonly onLost: () => void;
  /** Resolves with a reason when all objects must be enqueued again. */
  readonly again: (signal: AbortSignal) => Promise<string>;
  /** Delay after such an error, in ms. Default 1 s. */
  readonly retryMs?: number;
  /** Interval of the check for data loss, in ms. Default 5 s, which delays the recovery of lost work. */
  readonly checkMs?: number;
}

/** Objects that are requested together: a few script calls, ahead of which no event has to wait long. */
const CHUNK = 128;
const CHUNK_EVERY_MS = 100;

const LOST = "possible Redis data loss";
const INTERVAL = "resync interval";
const ACQUIRED = "leadership acquired";

/**
 * Enqueues every object when leadership begins and the progress of the last leader is not known, when Redis may have lost requests, and when `again` resolves. Then repeats it
 * per resync interval, spread over the interval.
 */
export async function runResync(options: ResyncOptions): Promise<void> {
  const { store, incarnation, signal, onError, onLost, retryMs = 1_000 } = options;
  const sweeps = new Sweeps(options.sweep);
  await store.synced;
  for (let reason = ACQUIRED; ;) {
    // Before the first request, to notice a loss during the first round as well.
    const known = await insist(incarnation, { signal, onError, retryMs });
    const over = new AbortController();
    const round = AbortSignal.any([signal, over.signal]);
    const next = Promise.race([
      untilLost(known, options, round).then(() => LOST),
      options.again(round),
    ]);
    const noticed = next.finally(() => over.abort());
    try {
      // Together from the start, because a stop rejects both.
      await Promise.all([requestRounds(options, { reason, known, sweeps }, round), noticed]);
    } catch (error) {
      signal.throwIfAborted();
      if (!over.signal.aborted) throw error;
    } finally {
      over.abort();
    }
    reason = await next;
    if (reason === LOST) onLost();
  }
}

async function requestRounds(
  options: ResyncOptions,
  round: Omit<Round, "isResumed">,
  signal: AbortSignal,
): Promise<void> {
  const { reason, known, sweeps } = round;
  const isResumed = reason === ACQUIRED && (await resumes(options, known));
  if (reason === LOST || (reason === ACQUIRED && !isResumed)) sweeps.start();
  await requestAll(options, { ...round, isResumed }, signal);
}

/** The searches of a leadership for objects that do not exist any more. */
class Sweeps {
  readonly #sweep: () => Promise<void>;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(sweep: () => Promise<void> = () => Promise.resolve()) {
    this.#sweep = sweep;
  }

  start(): void {
    this.#ended = Promise.all([this.#ended, this.#sweep()]);
    this.#ended.catch(() => undefined);
  }

  /** Resolves after all searches so far. */
  get ended(): Promise<unknown> {
    return this.#ended;
  }
}

/** A failure of Redis only costs the round. */
async function resumes(
  { progress, signal, onError }: ResyncOptions,
  known: string,
): Promise<boolean> {
  try {
    return (await progress?.resume(known, signal)) ?? false;
  } catch (error) {
    signal.throwIfAborted();
    onError(ensureError(error));
    return false;
  }
}

interface Round {
  readonly reason: string;
  readonly known: string;
  readonly sweeps: Sweeps;
  /** True if the first round is not needed. */
  readonly isResumed: boolean;
}

/** Submits the objects of a round in chunks; those of later rounds are spread over the interval. */
async function requestAll(
  { controller, store, source, seen, progress }: ResyncOptions,
  { reason: firstReason, known, sweeps, isResumed }: Round,
  signal: AbortSignal,
): Promise<void> {
  const report = () =>
    void sweeps.ended.then(() => progress?.report(known, signal)).catch(() => undefined);
  let reason = isResumed ? INTERVAL : firstReason;
  if (isResumed) report();
  for (let intervalMs = isResumed ? controller.resyncMs : 0; ; intervalMs = controller.resyncMs) {
    const objects = [...store.list()];
    const size = chunkSize(objects.length, intervalMs);
    for (let start = 0; start < objects.length; start += size) {
      signal.throwIfAborted();
      const chunk = objects.slice(start, start + size);
      if (intervalMs > 0) await sleepMs((intervalMs * chunk.length) / objects.length, signal);
      const requests = chunk.map((object) =>
        source.resync(object, { reason, seen: seen(object.metadata.namespace) }),
      );
      await Promise.all(requests);
    }
    if (intervalMs === 0) report();
    if (objects.length === 0) await sleepMs(Math.min(controller.resyncMs, 60_000), signal);
    reason = INTERVAL;
  }
}

/** A chunk per `CHUNK_EVERY_MS` at least, so that a large round is not limited by round trips. */
function chunkSize(objects: number, intervalMs: number): number {
  if (intervalMs === 0) return CHUNK;
  return Math.min(CHUNK, Math.max(1, Math.floor((objects * CHUNK_EVERY_MS) / intervalMs)));
}
