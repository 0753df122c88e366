import type { ErrorIssue } from "./errors.ts";

/** The random spread of a delay, so that simultaneous failures do not retry together. */
export type Jitter =
  | { readonly kind: "none" }
  /** `d/2 + U(0, d/2)`. */
  | { readonly kind: "equal" }
  /** `U(0, d)`. */
  | { readonly kind: "full" }
  /** `d + U(0, share * d)`, as client-go's `wait.Jitter`. */
  | { readonly kind: "proportional"; readonly share: number };

/** A series of growing delays. Terms follow client-go's `wait.Backoff`. */
export interface BackoffPolicy {
  /** First delay in ms. Too low adds load to a failing server; too high delays recovery. */
  readonly baseMs: number;
  /** Growth per step, at least 1. */
  readonly factor: number;
  /** Longest delay in ms, before jitter. */
  readonly capMs: number;
  /** Number of retries; `Infinity` never ends. 0 never retries; a huge number hides a permanent fault. */
  readonly steps: number;
  readonly jitter: Jitter;
}

export type NextDelay =
  | { readonly kind: "wait"; readonly afterMs: number }
  | { readonly kind: "exhausted"; readonly steps: number };

/**
 * Returns the delay before retry number `retry` (from 0). A pure function of the number, so backoff survives a restart.
 * Full jitter is the default: with equal delays, the writers of one conflict would conflict again
 * (AWS Architecture Blog, "Exponential Backoff And Jitter").
 */
export function nextDelay(
  policy: BackoffPolicy,
  retry: number,
  random: () => number = Math.random,
): NextDelay {
  if (retry >= policy.steps) return { kind: "exhausted", steps: policy.steps };
  const delayMs = Math.min(policy.capMs, policy.baseMs * policy.factor ** retry);
  return { kind: "wait", afterMs: spread(delayMs, policy.jitter, random) };
}

/** Returns an issue with pointer and suggested fix for each invalid part of a policy. */
export function findBackoffPolicyIssues(policy: BackoffPolicy): ErrorIssue[] {
  const { baseMs, factor, capMs, steps, jitter } = policy;
  const issues: ErrorIssue[] = [];
  const require = (holds: boolean, part: string, value: unknown, wanted: string) => {
    if (!holds)
      issues.push({ pointer: `/${part}`, detail: `must be ${wanted} (got ${String(value)})` });
  };
  const isNumber = (value: unknown): value is number => typeof value === "number";
  require(isNumber(baseMs) && baseMs > 0 && Number.isFinite(baseMs), "baseMs", baseMs, "> 0");
  require(isNumber(factor) && factor >= 1 && Number.isFinite(factor), "factor", factor, ">= 1");
  const atLeast = Number.isFinite(baseMs) ? baseMs : 0;
  require(isNumber(capMs) &&
    Number.isFinite(capMs) &&
    capMs >= atLeast, "capMs", capMs, `>= baseMs (${String(baseMs)}) and finite`);
  require(isNumber(steps) &&
    (Number.isInteger(steps) || steps === Infinity) &&
    steps >= 0, "steps", steps, "an integer >= 0, or Infinity");
  const kind: unknown = (jitter as Jitter | undefined)?.kind;
  const known = ["none", "equal", "full", "proportional"];
  require(known.some((name) => name === kind), "jitter/kind", kind, `one of ${known.join(", ")}`);
  if (kind === "proportional") {
    const { share } = jitter as { share?: unknown };
    require(isNumber(share) && share >= 0 && Number.isFinite(share), "jitter/share", share, ">= 0");
  }
  return issues;
}

/** @throws RangeError for an invalid policy, so that a typo fails at start and not at the first conflict. */
export function defineBackoff(policy: BackoffPolicy): BackoffPolicy {
  const issues = findBackoffPolicyIssues(policy);
  if (issues.length === 0) return policy;
  const list = issues.map(({ pointer, detail }) => `${pointer.slice(1)} ${detail}`).join("; ");
  throw new RangeError(`invalid backoff policy: ${list}`);
}

/** client-go's `retry.DefaultRetry`: 5 attempts, so 4 sleeps of 10 to 11 ms. */
export const defaultRetry: BackoffPolicy = {
  baseMs: 10,
  factor: 1,
  capMs: 10,
  steps: 4,
  jitter: { kind: "proportional", share: 0.1 },
};

/** client-go's `retry.DefaultBackoff`: 4 attempts; sleeps of 10, 50 and 250 ms, up to 10 % more. */
export const defaultBackoff: BackoffPolicy = {
  baseMs: 10,
  factor: 5,
  capMs: 250,
  steps: 3,
  jitter: { kind: "proportional", share: 0.1 },
};

/** Backoff of attempts with a write conflict. */
export const conflictBackoff: BackoffPolicy = {
  baseMs: 50,
  factor: 2,
  capMs: 5_000,
  steps: Infinity,
  jitter: { kind: "full" },
};

/** Backoff of failed attempts. */
export const failureBackoff: BackoffPolicy = {
  baseMs: 250,
  factor: 2,
  capMs: 30_000,
  steps: Infinity,
  jitter: { kind: "full" },
};

/** Backoff of attempts that the server rejected: only another change can help. */
export const rejectedBackoff: BackoffPolicy = {
  baseMs: 30_000,
  factor: 2,
  capMs: 1_000_000,
  steps: Infinity,
  jitter: { kind: "equal" },
};

function spread(delayMs: number, jitter: Jitter, random: () => number): number {
  switch (jitter.kind) {
    case "none":
      return delayMs;
    case "equal":
      return delayMs / 2 + (random() * delayMs) / 2;
    case "full":
      return random() * delayMs;
    case "proportional":
      return delayMs * (1 + random() * jitter.share);
  }
}
