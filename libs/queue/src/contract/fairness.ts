import { invalidConfig, type ErrorIssue } from "@konverge/core";

/** The shares of namespaces in one queue. Equal for all workers of a queue; the last worker to start decides. */
export interface Fairness {
  /**
   * Waiting time after which a request starts next, in ms. Default 60 s. Too short: a backlog is served by age alone. Too
   * long: resyncs wait behind a busy queue.
   */
  readonly agingMs: number;
  /** Starts of a namespace per start of a namespace with weight 1, while both have waiting requests. Default 1. */
  readonly weights: Readonly<Record<string, number>>;
}

const DEFAULT_AGING_MS = 60_000;
const MIN_AGING_MS = 100;
const MAX_WEIGHT = 1_000;

/** Returns all errors in the options. */
export function findFairnessIssues({ agingMs, weights }: Fairness): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  if (!(Number.isFinite(agingMs) && agingMs >= MIN_AGING_MS)) {
    issues.push({
      pointer: "/agingTime",
      detail: `agingTime: must be >= ${MIN_AGING_MS} ms (got ${agingMs})`,
    });
  }
  for (const [namespace, weight] of Object.entries(weights)) {
    if (weight >= 1 / MAX_WEIGHT && weight <= MAX_WEIGHT) continue;
    issues.push({
      pointer: `/weights/${namespace}`,
      detail: `weights.${namespace}: must be a number from ${1 / MAX_WEIGHT} to ${MAX_WEIGHT} (got ${weight})`,
    });
  }
  return issues;
}

/** Applies defaults. @throws KonvergeError `invalid_config` with all errors */
export function checkedFairness({
  agingMs = DEFAULT_AGING_MS,
  weights = {},
}: Partial<Fairness>): Fairness {
  const fairness = { agingMs, weights };
  const issues = findFairnessIssues(fairness);
  if (issues.length > 0) throw invalidConfig(issues);
  return fairness;
}

/** Returns the arguments of the script `age`. Namespaces are encoded as in keys. */
export function fairnessArguments({ agingMs, weights }: Fairness): {
  readonly ageMs: number;
  readonly weights: string;
  readonly tenants: readonly { readonly name: string; readonly weight: number }[];
} {
  const pairs = Object.entries(weights).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    // Slightly early, because the aging pump runs at intervals.
    ageMs: Math.floor(agingMs * 0.9),
    weights: JSON.stringify(pairs),
    tenants: pairs.map(([namespace, weight]) => ({ name: encodeURIComponent(namespace), weight })),
  };
}
