import { invalidConfig, type ErrorIssue } from "@konverge/core";

/** How requests of several namespaces share one queue. The same for all workers of a queue; the last that started decides. */
export interface Fairness {
  /**
   * A waiting request comes next, whatever else waits, when it has waited this long, in ms. Default 60 s. Too short and a
   * backlog is served in the order of its age alone; too long and resyncs wait behind a busy queue.
   */
  readonly ageingMs: number;
  /** Starts of a namespace for each start of one with weight 1, while both have requests waiting. Default 1 each. */
  readonly weights: Readonly<Record<string, number>>;
}

const DEFAULT_AGEING_MS = 60_000;
const MIN_AGEING_MS = 100;
const MAX_WEIGHT = 1_000;

/** Everything that is wrong with it. */
export function findFairnessIssues({ ageingMs, weights }: Fairness): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  if (!(Number.isFinite(ageingMs) && ageingMs >= MIN_AGEING_MS)) {
    issues.push({
      pointer: "/agingTime",
      detail: `ageing: is ${ageingMs} ms; give at least ${MIN_AGEING_MS}`,
    });
  }
  for (const [namespace, weight] of Object.entries(weights)) {
    if (weight >= 1 / MAX_WEIGHT && weight <= MAX_WEIGHT) continue;
    issues.push({
      pointer: `/weights/${namespace}`,
      detail: `weights.${namespace}: is ${weight}; give a number from ${1 / MAX_WEIGHT} to ${MAX_WEIGHT}`,
    });
  }
  return issues;
}

/** With what is left out at its default. @throws KonvergeError `invalid_config` with everything that is wrong */
export function checkedFairness({
  ageingMs = DEFAULT_AGEING_MS,
  weights = {},
}: Partial<Fairness>): Fairness {
  const fairness = { ageingMs, weights };
  const issues = findFairnessIssues(fairness);
  if (issues.length > 0) throw invalidConfig(issues);
  return fairness;
}

/** What the script `age` reads. Namespaces are encoded as in keys. */
export function fairnessArguments({ ageingMs, weights }: Fairness): {
  readonly ageMs: number;
  readonly weights: string;
  readonly tenants: readonly { readonly name: string; readonly weight: number }[];
} {
  const pairs = Object.entries(weights).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    // Somewhat early, since the pump that looks after the aged comes by every so often.
    ageMs: Math.floor(ageingMs * 0.9),
    weights: JSON.stringify(pairs),
    tenants: pairs.map(([namespace, weight]) => ({ name: encodeURIComponent(namespace), weight })),
  };
}
