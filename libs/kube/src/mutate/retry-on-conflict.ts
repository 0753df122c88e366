import { nextDelay, sleepMs, type BackoffPolicy } from "@konverge/core";
import { isOptimisticConflict } from "../errors/error-predicates.ts";

export interface RetryOnConflictOptions {
  /** Ends the wait between tries; the last conflict is thrown then. */
  readonly signal?: AbortSignal;
  readonly random?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * Calls `attempt` again on optimistic conflicts, like client-go's `retry.RetryOnConflict`. `attempt` must read again
 * each time and throw the conflict, bare or as a cause. Other errors are thrown immediately, including a field owned by
 * another manager and a replaced object, because a retry helps with neither.
 * @throws the last conflict when the retries are used up or the wait is aborted
 */
export async function retryOnConflict<T>(
  policy: BackoffPolicy,
  attempt: () => Promise<T>,
  { signal, random = Math.random, sleep = sleepMs }: RetryOnConflictOptions = {},
): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isOptimisticConflict(error)) throw error;
      const step = nextDelay(policy, retry, random);
      if (step.kind === "exhausted" || signal?.aborted === true) throw error;
      await sleep(step.afterMs, signal).catch((interrupted: unknown) => {
        throw signal?.aborted === true ? error : interrupted;
      });
    }
  }
}
