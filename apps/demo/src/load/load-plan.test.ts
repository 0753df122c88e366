import { expect, test } from "vitest";
import { MAX_REPLICAS, MIN_REPLICAS, planLoad, replicasFor, TARGET_LOAD } from "./load-plan.ts";

test("the same seed gives the same load, another seed another", () => {
  const plan = (seed: number) => planLoad(["a", "b"], { seed, steps: 4, intervalMs: 100 });
  expect(plan(1)).toEqual(plan(1));
  expect(plan(1)).not.toEqual(plan(2));
  expect(plan(1).map(({ atMs }) => atMs)).toEqual([0, 100, 200, 300]);
});

test("replicas follow the load within their bounds", () => {
  expect(replicasFor(0)).toBe(MIN_REPLICAS);
  expect(replicasFor(TARGET_LOAD + 1)).toBe(2);
  expect(replicasFor(1e6)).toBe(MAX_REPLICAS);
});
