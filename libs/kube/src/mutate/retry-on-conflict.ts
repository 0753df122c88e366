import { nextDelay, sleepMs, type BackoffPolicy } from "@konverge/core";
import { isOptimisticConflict } from "../errors/kube-api-error.ts";

export interface RetryOnConflictOptions {
  /** Ends the wait between tries; the last conflict is thrown then. */
  readonly signal?: AbortSignal;
  readonly random?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * Calls `attempt` again while it loses optimistic races, as client-go's `retry.RetryOnConflict`: `attempt` must read
 * again each time and let the conflict through, bare or as a cause. Other errors end it at once, also a field that
 * another manager owns and an object that was replaced, for trying again helps with neither.
 * @throws the last conflict when the ladder ends or the wait is aborted
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
