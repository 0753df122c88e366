import { KonvergeError, toMs, type Duration } from "@konverge/core";

/** The service level objective of a controller: the share of changes that are reconciled within a time. */
export interface ServiceLevel {
  /** Longest time from a change to the success of its attempt. */
  readonly threshold: Duration;
  /** Share of the changes that must be within the threshold, such as 0.99. Above 0 and below 1. */
  readonly objective: number;
}

/** Returns the problem of an objective. The value may come from JavaScript. */
export function findServiceLevelIssue(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return 'must be an object such as { threshold: "30s", objective: 0.99 }';
  }
  const { threshold, objective, ...unknown } = value as Record<string, unknown>;
  const [option] = Object.keys(unknown);
  if (option !== undefined) return `${option} is unknown; valid fields: threshold, objective`;
  if (!isDuration(threshold)) {
    return `threshold must be a duration of at least 1 ms, such as "30s" (got ${String(threshold)})`;
  }
  return typeof objective === "number" && objective > 0 && objective < 1
    ? undefined
    : `objective must be a share above 0 and below 1, such as 0.99 (got ${String(objective)})`;
}

function isDuration(value: unknown): boolean {
  try {
    return toMs(value as Duration, "threshold") >= 1;
  } catch (error) {
    if (!(error instanceof KonvergeError)) throw error;
    return false;
  }
}
