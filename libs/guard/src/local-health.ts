/** Time for the fleet's breaker to open, in ms. */
const CONFIRM_MS = 2_000;
const FIRST_TRY_MS = 2_000;
const LONGEST_TRY_MS = 30_000;
/** Rejected credentials within the window that pause this process. */
const REFUSALS = 3;
const REFUSAL_WINDOW_MS = 10_000;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;

export type Health =
  | { readonly kind: "well" }
  /** Too many failures of this process; the fleet's breaker may open at any time. */
  | { readonly kind: "doubtful"; readonly againMs: number }
  /** The fleet's breaker stays closed, so this process is the cause. Occasional calls test for recovery. */
  | { readonly kind: "unwell"; readonly againMs: number }
  /** The credentials of this process are rejected, or it has none. */
  | { readonly kind: "unauthorized"; readonly againMs: number };

export interface LocalHealth {
  /** False if the last calls of this process all failed. */
  readonly isSound: boolean;
  /** Time from which a test call may be sent while calls fail. */
  readonly tryMs: number;
  /** Returns the health at `nowMs`; `againMs` is the delay of calls. */
  at(nowMs: number): Health;
  noteOk(): void;
  noteFailed(nowMs: number): void;
  noteUnauthorized(nowMs: number): void;
  /** Records that there are no credentials for `againMs`. */
  noteNoCredentials(nowMs: number, againMs: number): void;
  /** Records that there are credentials. */
  noteCredentials(): void;
  /** Admits one test call; the next one only after a longer time. */
  startTry(nowMs: number): void;
  /** Makes a test call due, because the fleet's breaker has closed: others reach the server again. */
  retry(nowMs: number): void;
}

/**
 * The breaker of one process, for its own network failures, which must not stop the fleet, and for its credentials. After
 * `failuresToPause` in a row the process pauses and waits for the fleet's breaker.
 */
export function createLocalHealth(
  failuresToPause: number,
  random: () => number = Math.random,
): LocalHealth {
  let failures = 0;
  let isTripped = false;
  let doubtUntilMs = 0;
  let tries = 0;
  let nextTryMs = 0;
  let refusedMs: number[] = [];
  let pausedUntilMs = -Infinity;
  let pauses = 0;
  /** When credentials are tried again; undefined if there are some. */
  let withoutUntilMs: number | undefined;
  const jittered = (ms: number) => ms * (0.75 + 0.5 * random());
  const heal = () => {
    failures = 0;
    isTripped = false;
    tries = 0;
  };
  return {
    get isSound() {
      return !isTripped;
    },
    get tryMs() {
      return nextTryMs;
    },
    at(nowMs) {
      if (withoutUntilMs !== undefined) {
        return { kind: "unauthorized", againMs: Math.max(0, withoutUntilMs - nowMs) };
      }
      if (nowMs < pausedUntilMs) return { kind: "unauthorized", againMs: pausedUntilMs - nowMs };
      if (!isTripped) return { kind: "well" };
      const againMs = Math.max(0, nextTryMs - nowMs);
      return { kind: nowMs < doubtUntilMs ? "doubtful" : "unwell", againMs };
    },
    noteOk() {
      heal();
      refusedMs = [];
      pauses = 0;
    },
    noteFailed(nowMs) {
      failures += 1;
      if (failures < failuresToPause || isTripped) return;
      isTripped = true;
      doubtUntilMs = nextTryMs = nowMs + CONFIRM_MS;
    },
    noteUnauthorized(nowMs) {
      refusedMs = [...refusedMs.filter((ms) => nowMs - ms < REFUSAL_WINDOW_MS), nowMs];
      if (refusedMs.length < REFUSALS) return;
      refusedMs = [];
      pausedUntilMs = nowMs + jittered(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** pauses));
      pauses += 1;
    },
    noteNoCredentials(nowMs, againMs) {
      withoutUntilMs = nowMs + againMs;
    },
    noteCredentials() {
      withoutUntilMs = undefined;
    },
    startTry(nowMs) {
      nextTryMs = nowMs + jittered(Math.min(LONGEST_TRY_MS, FIRST_TRY_MS * 2 ** tries));
      tries += 1;
    },
    retry(nowMs) {
      tries = 0;
      nextTryMs = nowMs;
      doubtUntilMs = nowMs + CONFIRM_MS;
    },
  };
}
