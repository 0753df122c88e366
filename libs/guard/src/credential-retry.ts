import { PROBE_DEADLINE_MS } from "./prober.ts";
import type { Schedule } from "./timers.ts";

export interface CredentialRetryOptions {
  /** Sends one call, which obtains credentials first. */
  readonly probe: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly schedule: Schedule;
  readonly isMissing: () => boolean;
  /** Lets the next call try. */
  readonly release: () => void;
}

export interface CredentialRetry {
  arm(ms: number): void;
}

const SHORTEST_MS = 100;
const AGAIN_MS = 1_000;

/** Tries to obtain credentials again while work is paused, since perhaps no other call does. */
export function createCredentialRetry(options: CredentialRetryOptions): CredentialRetry {
  const { probe, schedule, isMissing, release } = options;
  let cancel: (() => void) | undefined;
  const retry: CredentialRetry = {
    arm(ms) {
      cancel ??= schedule(Math.max(SHORTEST_MS, ms), () => {
        cancel = undefined;
        void run();
      });
    },
  };
  const run = async () => {
    if (probe === undefined) return release();
    await probe(AbortSignal.timeout(PROBE_DEADLINE_MS)).catch(() => undefined);
    if (isMissing()) retry.arm(AGAIN_MS);
  };
  return retry;
}
