import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { Observed } from "./observed.ts";

export interface RunMetrics {
  /**
   * Creates every series of a workflow. `counts` returns the number of runs by status, over all workers. Returns the function that ends it.
   */
  observeRuns(
    workflow: string,
    runs: { readonly counts: () => Promise<Readonly<Record<string, number>>> },
  ): () => void;
  /** An execution released its run. */
  executionEnded(
    workflow: string,
    execution: { readonly result: string; readonly durationMs: number },
  ): void;
  /** A step or a wait was recorded. */
  recorded(
    workflow: string,
    step: { readonly kind: string; readonly failed: boolean; readonly durationMs: number },
  ): void;
  /** A run was handed back, because only the code of another worker fits it. */
  handedBack(workflow: string): void;
  /** Ended runs were deleted before the end of their retention. */
  dropped(workflow: string, count: number): void;
}

const ENDS = ["done", "failed", "cancelled"];
const HANDED_BACK = "handed_back";
const PAUSES = ["waiting", "continued", "blocked", "lost", "error", HANDED_BACK];
const BODIES = new Set(["step", "undo"]);
const WAITS = ["signal", "update", "child", "wait"];
/** From a computation to a wait for a machine, retries included. */
const STEP_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];
/** From a signal that had already arrived to an approval that takes days. */
const WAIT_SECONDS = [0.1, 1, 5, 30, 60, 300, 900, 3_600, 14_400, 86_400, 604_800];

/** The metrics of workflows. No label has the name of a run or step. */
export function createRunMetrics(registry: Registry): (cluster: string) => RunMetrics {
  const registers = [registry];
  const observed = new Observed<() => Promise<Readonly<Record<string, number>>>>();
  const labelled = <Label extends string>(name: string, help: string, ...labels: Label[]) => ({
    name: `konverge_workflow_${name}`,
    help,
    labelNames: ["cluster", "workflow", ...labels] as const,
    registers,
  });
  const executions = new Counter(
    labelled("executions_total", "Total number of workflow executions by result.", "result"),
  );
  const failures = new Counter(
    labelled(
      "step_failures_total",
      "Total number of steps, undo steps and waits recorded as failed.",
      "kind",
    ),
  );
  const dropped = new Counter(
    labelled(
      "runs_dropped_total",
      "Total number of ended runs deleted before the end of their retention, because of their memory limit.",
    ),
  );
  const execution = new Histogram({
    ...labelled("execution_seconds", "Duration of an execution."),
    buckets: STEP_SECONDS,
  });
  const steps = new Histogram({
    ...labelled(
      "step_seconds",
      "Time from the first try of a step or undo step to its record.",
      "kind",
    ),
    buckets: STEP_SECONDS,
  });
  const waits = new Histogram({
    ...labelled("wait_seconds", "Time from the start of a wait to its record.", "kind"),
    buckets: WAIT_SECONDS,
  });
  const runs: Gauge<"cluster" | "workflow" | "status"> = new Gauge({
    ...labelled("runs", "Number of kept runs, all workers.", "status"),
    async collect() {
      const counted = await Promise.all(
        // Without Redis the values are unknown: a missing series shows that, a constant one would not.
        [...observed].flatMap(([of, all]) =>
          [...all].map(async (counts) => [of, await counts().catch(() => ({}))] as const),
        ),
      );
      runs.reset();
      for (const [{ cluster, name }, counts] of counted) {
        for (const [status, count] of Object.entries(counts)) {
          runs.inc({ cluster, workflow: name, status }, count);
        }
      }
    },
  });
  return (cluster) => ({
    observeRuns(workflow, { counts }) {
      for (const result of [...ENDS, ...PAUSES]) executions.inc({ cluster, workflow, result }, 0);
      for (const kind of [...BODIES, ...WAITS]) failures.inc({ cluster, workflow, kind }, 0);
      dropped.inc({ cluster, workflow }, 0);
      execution.zero({ cluster, workflow });
      for (const kind of BODIES) steps.zero({ cluster, workflow, kind });
      for (const kind of WAITS) waits.zero({ cluster, workflow, kind });
      return observed.add({ cluster, name: workflow }, counts);
    },
    executionEnded(workflow, { result, durationMs }) {
      executions.inc({ cluster, workflow, result });
      execution.observe({ cluster, workflow }, durationMs / 1_000);
    },
    handedBack(workflow) {
      executions.inc({ cluster, workflow, result: HANDED_BACK });
    },
    dropped(workflow, count) {
      dropped.inc({ cluster, workflow }, count);
    },
    recorded(workflow, { kind, failed, durationMs }) {
      if (failed) failures.inc({ cluster, workflow, kind });
      (BODIES.has(kind) ? steps : waits).observe({ cluster, workflow, kind }, durationMs / 1_000);
    },
  });
}
