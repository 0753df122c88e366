import type { ErrorIssue } from "@konverge/core";

/** Maximum length of a key in characters. */
const MAX_KEY = 200;
const MAX_RUNS = 1_000_000;
const KNOWN = ["runs", "key", "label"];

/** The slots for the runs of a workflow. A run holds one from its first execution to its end, even while it waits or is paused. */
export interface RunConcurrency<I = never> {
  /** Number of slots per key or value of the label; without both, for all runs. */
  readonly runs: number;
  /** Runs with the same result share slots, such as those of a tenant. At most 200 characters; not encrypted. */
  readonly key?: (input: I) => string;
  /** Name of a label, instead of `key`. Runs with the same value share slots; runs without the label share slots too. */
  readonly label?: string;
}

/** Returns all problems of the option, with pointers. */
export function findConcurrencyIssues(concurrency: unknown): ErrorIssue[] {
  const pointer = "/concurrency";
  if (typeof concurrency !== "object" || concurrency === null) {
    const detail = `concurrency must be { runs, key, label }; it counts the runs of all workers (got ${String(concurrency)})`;
    return [{ pointer, detail }];
  }
  const { runs, key, label } = concurrency as Partial<Record<string, unknown>>;
  const issues: ErrorIssue[] = Object.keys(concurrency)
    .filter((field) => !KNOWN.includes(field))
    .map((field) => ({
      pointer: `${pointer}/${field}`,
      detail: `concurrency.${field} is unknown; valid options: ${KNOWN.join(", ")}`,
    }));
  const check = (holds: boolean, field: string, detail: string) => {
    if (!holds) issues.push({ pointer: `${pointer}/${field}`, detail: `concurrency.${detail}` });
  };
  const count = Number(runs);
  check(
    Number.isSafeInteger(runs) && count >= 1 && count <= MAX_RUNS,
    "runs",
    `runs must be an integer from 1 to ${MAX_RUNS} (got ${String(runs)})`,
  );
  check(
    key === undefined || typeof key === "function",
    "key",
    "key must be a function of the input that returns a text",
  );
  check(
    label === undefined || (typeof label === "string" && label !== ""),
    "label",
    `label must be the name of a label (got ${JSON.stringify(label)})`,
  );
  check(
    key === undefined || label === undefined,
    "label",
    "label cannot be combined with key; give one of them",
  );
  return issues;
}

/** Returns the problem of a result of `concurrency.key`. */
export function findGroupIssue(group: unknown): string | undefined {
  if (typeof group === "string" && group.length <= MAX_KEY && group.isWellFormed())
    return undefined;
  const got = typeof group === "string" ? `${group.length} characters` : JSON.stringify(group);
  return `concurrency.key must return a text of at most ${MAX_KEY} characters (got ${got})`;
}
