import { MUTATION_OUTCOMES, type MutationOutcome } from "@konverge/core";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { Observed } from "./observed.ts";

interface Counts {
  readonly accepted: number;
  readonly waiting: number;
  readonly ended: Readonly<Record<MutationOutcome, number>>;
}

/** The metrics of mutations. */
export interface MutationMetrics {
  /**
   * Creates every series of mutations. `counts` returns the numbers of the cluster, over all workers. Returns the function that
   * ends it.
   */
  observeMutations(counts: () => Promise<Counts>): () => void;
  /** A write was made that contains so many mutations. */
  mutationsWritten(mutations: number): void;
  /** A write ended in a conflict. */
  mutationConflicted(): void;
  /** A mutation has ended with its change on the object. */
  mutationLanded(durationMs: number): void;
  /** An attempt has failed; its mutations are tried again. */
  mutationsFailed(): void;
}

const MUTATIONS_PER_WRITE = [1, 2, 4, 8, 16, 32, 64];
/** From one write to a mutation that waits for an API server. */
const LAND_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];
const NAME = "mutations";

export function createMutationMetrics(registry: Registry): (cluster: string) => MutationMetrics {
  const registers = [registry];
  const labelNames = ["cluster"] as const;
  const observed = new Observed<() => Promise<Counts>>();
  createSharedCounts(registry, observed);
  const sizes = new Histogram({
    name: "konverge_mutation_batch_size",
    help: "Mutations of a write.",
    labelNames,
    buckets: MUTATIONS_PER_WRITE,
    registers,
  });
  const durations = new Histogram({
    name: "konverge_mutation_duration_seconds",
    help: "Time from the submission of a mutation to its end with the change on the object.",
    labelNames,
    buckets: LAND_SECONDS,
    registers,
  });
  const conflicts = new Counter({
    name: "konverge_mutation_conflicts_total",
    help: "Total number of writes of mutations that ended in a conflict.",
    labelNames,
    registers,
  });
  const failures = new Counter({
    name: "konverge_mutation_failed_attempts_total",
    help: "Total number of failed attempts, whose mutations are tried again.",
    labelNames,
    registers,
  });
  return (cluster) => ({
    observeMutations(counts) {
      sizes.zero({ cluster });
      durations.zero({ cluster });
      conflicts.inc({ cluster }, 0);
      failures.inc({ cluster }, 0);
      return observed.add({ cluster, name: NAME }, counts);
    },
    mutationsWritten: (mutations) => sizes.observe({ cluster }, mutations),
    mutationConflicted: () => conflicts.inc({ cluster }),
    mutationLanded: (durationMs) => durations.observe({ cluster }, Math.max(0, durationMs) / 1_000),
    mutationsFailed: () => failures.inc({ cluster }),
  });
}

/** The numbers in Redis, which every worker reports. */
function createSharedCounts(registry: Registry, observed: Observed<() => Promise<Counts>>): void {
  const registers = [registry];
  let reading: Promise<(readonly [string, Counts])[]> | undefined;
  /** Reads once for all metrics of a scrape. */
  const readOnce = () => {
    reading ??= readCounts(observed).finally(() => {
      reading = undefined;
    });
    return reading;
  };
  const accepted: Counter<"cluster"> = new Counter({
    name: "konverge_mutations_accepted_total",
    help: "Total number of accepted mutations, all workers.",
    labelNames: ["cluster"],
    registers,
    async collect() {
      const counted = await readOnce();
      accepted.reset();
      for (const [cluster, counts] of counted) accepted.inc({ cluster }, counts.accepted);
    },
  });
  const ended: Counter<"cluster" | "outcome"> = new Counter({
    name: "konverge_mutations_ended_total",
    help: "Total number of ended mutations by outcome, all workers.",
    labelNames: ["cluster", "outcome"],
    registers,
    async collect() {
      const counted = await readOnce();
      ended.reset();
      for (const [cluster, counts] of counted) {
        for (const outcome of MUTATION_OUTCOMES) {
          ended.inc({ cluster, outcome }, counts.ended[outcome]);
        }
      }
    },
  });
  const waiting: Gauge<"cluster"> = new Gauge({
    name: "konverge_mutations_waiting",
    help: "Number of mutations that have not ended, all workers.",
    labelNames: ["cluster"],
    registers,
    async collect() {
      const counted = await readOnce();
      waiting.reset();
      for (const [cluster, counts] of counted) waiting.set({ cluster }, counts.waiting);
    },
  });
}

async function readCounts(
  observed: Observed<() => Promise<Counts>>,
): Promise<(readonly [string, Counts])[]> {
  const read = [...observed].map(async ([{ cluster }, [counts]]) => {
    // Without Redis the values are unknown: a missing series shows that, a constant one would not.
    const counted = await counts?.().catch(() => undefined);
    return counted === undefined ? [] : [[cluster, counted] as const];
  });
  return (await Promise.all(read)).flat();
}
