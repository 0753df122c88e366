import {
  conflictBackoff,
  failureBackoff,
  findBackoffPolicyIssues,
  rejectedBackoff,
  type ErrorIssue,
  type BackoffPolicy,
} from "@konverge/core";
import type { QueueBackoffs } from "@konverge/queue";

/** Delays between job retries, per cause. Omitted parts of a policy keep their defaults. */
export interface Backoff {
  /** After a conflict. Default: full jitter, 50 ms doubling to 5 s. */
  readonly conflict?: Partial<BackoffPolicy>;
  /** After a failure. Default: full jitter, 250 ms doubling to 30 s. */
  readonly failure?: Partial<BackoffPolicy>;
  /** After a rejection by the server. Default: half jitter, 30 s doubling to 1000 s. */
  readonly rejected?: Partial<BackoffPolicy>;
}

const DEFAULTS: QueueBackoffs = {
  conflict: conflictBackoff,
  failure: failureBackoff,
  rejected: rejectedBackoff,
};

/** Completes the policies with defaults. */
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
