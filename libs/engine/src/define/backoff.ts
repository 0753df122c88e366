import {
  conflictBackoff,
  failureBackoff,
  findBackoffPolicyIssues,
  rejectedBackoff,
  type ErrorIssue,
  type BackoffPolicy,
} from "@konverge/core";
import type { QueueBackoffs } from "@konverge/queue";

/** Delays between retries, per cause. Omitted parts of a policy keep their defaults. */
export interface Backoff {
  /** After a conflict. Default: full jitter, 50 ms doubling to 5 s. */
  readonly conflict?: Partial<BackoffPolicy>;
  /** After a failure. Default: full jitter, 250 ms doubling to 30 s. */
  readonly failure?: Partial<BackoffPolicy>;
  /** After a rejection by the server. Default: half jitter, 30 s doubling to 1000 s. */
  readonly rejected?: Partial<BackoffPolicy>;
  /**
   * Between the tries of a `mutate` inside the handler, after a conflict. Default: once immediately, then full jitter that follows
   * the duration of a write, 8 tries. A policy replaces that: full jitter, 10 ms doubling to 1 s, with 7 `steps` (retries), or
   * without a limit if `conflictRetry` is `inline`. Few steps repeat the whole handler for each busy object; many occupy its
   * `concurrency` slot. Has no effect if `conflictRetry` is `job`.
   */
  readonly inline?: Partial<BackoffPolicy>;
}

/** Retries inside the handler; the attempt's timeout ends them. */
export const INLINE_BACKOFF: BackoffPolicy = {
  baseMs: 10,
  factor: 2,
  capMs: 1_000,
  steps: Infinity,
  jitter: { kind: "full" },
};
const DEFAULTS: Readonly<Record<keyof Backoff, BackoffPolicy>> = {
  conflict: conflictBackoff,
  failure: failureBackoff,
  rejected: rejectedBackoff,
  inline: INLINE_BACKOFF,
};

/** Completes the policies of job retries with defaults. */
export function completeBackoffs({ conflict, failure, rejected }: Backoff = {}): QueueBackoffs {
  return {
    conflict: { ...DEFAULTS.conflict, ...conflict },
    failure: { ...DEFAULTS.failure, ...failure },
    rejected: { ...DEFAULTS.rejected, ...rejected },
  };
}

/** Returns all invalid parts, by name. */
export function findBackoffIssues(backoff: unknown): ErrorIssue[] {
  if (backoff === undefined) return [];
  if (!isObject(backoff)) {
    return [{ pointer: "/backoff", detail: `backoff: write an object of backoff policies` }];
  }
  return Object.entries(backoff).flatMap(([name, policy]) => {
    const issue = (pointer: string, detail: string): ErrorIssue => ({
      pointer: `/backoff/${name}${pointer}`,
      detail: `backoff.${name}${pointer.replaceAll("/", ".")}: ${detail}`,
    });
    if (!isBackoffName(name)) {
      return [issue("", `is unknown; valid options: ${Object.keys(DEFAULTS).join(", ")}`)];
    }
    if (!isObject(policy))
      return [issue("", "write a backoff policy, for example { capMs: 60_000 }")];
    const unknown = Object.keys(policy).filter((part) => !Object.hasOwn(DEFAULTS[name], part));
    const known = Object.keys(DEFAULTS[name]).join(", ");
    return [
      ...unknown.map((part) => issue(`/${part}`, `is unknown; valid options: ${known}`)),
      ...findBackoffPolicyIssues({ ...DEFAULTS[name], ...policy }).map(({ pointer, detail }) =>
        issue(pointer, detail),
      ),
    ];
  });
}

function isBackoffName(name: string): name is keyof Backoff {
  return Object.hasOwn(DEFAULTS, name);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
