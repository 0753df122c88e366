import { startLongTimer } from "./long-timer.ts";
import type { Gate, Permit } from "./gate.ts";
import { takeToken, type BucketLimits } from "./token-bucket.ts";

export interface LocalGateOptions extends BucketLimits {
  /** Monotonic time in ms. */
  readonly clock?: () => number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * A {@link Gate} with a process-local token bucket. N processes have N times the rate: the limit is per process, not for the
 * fleet. Tokens are reserved in FIFO order.
 */
export function createLocalGate(options: LocalGateOptions): Gate {
  const { ratePerSecond, burst, clock = () => performance.now(), sleep = sleepMs } = options;
  if (!(ratePerSecond > 0 && burst >= 1 && Number.isFinite(ratePerSecond / burst))) {
    throw new RangeError(
      `ratePerSecond must be > 0 and burst >= 1 (got ${ratePerSecond} and ${burst})`,
    );
  }
  let tatMs = -Infinity;
  return {
    async admit(_call, { signal } = {}): Promise<Permit> {
      signal?.throwIfAborted();
      const nowMs = clock();
      const taken = takeToken({ ratePerSecond, burst }, tatMs, nowMs);
      tatMs = taken.tatMs;
      if (taken.waitMs > 0) await sleep(taken.waitMs, signal);
      return { waitedMs: taken.waitMs, settle: () => undefined };
    },
  };
}

/** Resolves after `ms`. @throws the signal's reason if aborted. */
export function sleepMs(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = () => {
      cancel();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
      reject(signal?.reason);
    };
    if (ms <= 0) {
      resolve();
      return;
    }
    const cancel = startLongTimer(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
