import { seededRandom } from "./seeded-random.ts";

/** What one machine carries, and how many machines a pool may have. */
export const TARGET_LOAD = 10;
export const MIN_REPLICAS = 1;
export const MAX_REPLICAS = 3;

export interface LoadStep {
  /** Time since the start of the act, in ms. */
  readonly atMs: number;
  /** Load by pool. */
  readonly loads: Readonly<Record<string, string>>;
  /** Pools whose reconcile another system requests over HTTP at this step. */
  readonly httpRequests: readonly string[];
}

/** The same steps for the same seed, whatever happens during the act. */
export function planLoad(
  pools: readonly string[],
  options: { readonly seed: number; readonly steps: number; readonly intervalMs: number },
): LoadStep[] {
  const random = seededRandom(options.seed);
  return Array.from({ length: options.steps }, (_, step) => ({
    atMs: step * options.intervalMs,
    loads: Object.fromEntries(
      pools.map((pool) => [pool, String(Math.floor(random() * MAX_REPLICAS * TARGET_LOAD))]),
    ),
    httpRequests: pools.filter(() => random() < 0.2),
  }));
}

/** The replicas that the autoscaler must reach for a load. */
export function replicasFor(load: number): number {
  return Math.min(MAX_REPLICAS, Math.max(MIN_REPLICAS, Math.ceil(load / TARGET_LOAD)));
}
