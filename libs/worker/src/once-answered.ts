import { sleepMs } from "@konverge/core";
import { isLateAnswer } from "@konverge/redis";

/** Longest time that a start waits for a slow Redis, in ms. */
const LIMIT_MS = 30_000;
const PAUSE_MS = 500;

export interface OnceAnsweredOptions {
  readonly onLate: (error: Error) => void;
  /** Ends the repetitions. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Repeats a step of a worker's start while Redis answers too late, for at most 30 s: many workers that start at once slow
 * down each other and Redis. A refused connection fails immediately, because the URL is probably wrong.
 */
export async function onceAnswered<T>(
  call: () => Promise<T>,
  { onLate, signal }: OnceAnsweredOptions,
): Promise<T> {
  const endMs = performance.now() + LIMIT_MS;
  for (let isReported = false; ; isReported = true) {
    try {
      return await call();
    } catch (error) {
      if (!isLateAnswer(error) || performance.now() >= endMs) throw error;
      if (!isReported) onLate(error);
      await sleepMs(PAUSE_MS * (0.5 + Math.random()), signal);
    }
  }
}
