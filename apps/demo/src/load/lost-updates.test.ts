import { expect, test } from "vitest";
import { findLostUpdates, isConverged } from "./lost-updates.ts";
import { COUNTER } from "./outside-writer.ts";
import type { PoolObject } from "./kinds.ts";

const pool = (replicas: number, machines: number, counter: number): PoolObject => ({
  apiVersion: "demo.konverge.dev/v1",
  kind: "NodePool",
  metadata: {
    name: "a",
    generation: 2,
    annotations: { [COUNTER]: String(counter) },
    labels: { l: "edit-3" },
  },
  spec: { replicas },
  status: { machines, observedGeneration: 2 },
});
const writer = { edits: { a: 3 }, labels: { a: { l: "edit-3" } }, conflicts: 0 };
const controllers = new Map([["a", { replicas: 2, machines: 2 }]]);

test("P3: nothing is lost when the pool holds what everybody wrote", () => {
  expect(findLostUpdates([pool(2, 2, 3)], writer, controllers)).toEqual([]);
});

test("P3: each missing increment and each other value counts", () => {
  const fields = (object: PoolObject, wrote = writer) =>
    findLostUpdates([object], wrote, controllers).map(({ field }) => field);
  expect(fields(pool(2, 2, 1))).toHaveLength(2);
  expect(fields(pool(1, 2, 3))).toEqual(["spec.replicas"]);
  expect(fields(pool(2, 1, 3))).toEqual(["status.machines"]);
  expect(fields(pool(2, 2, 3), { ...writer, labels: { a: { l: "edit-4" } } })).toEqual([
    'metadata.labels["l"]',
  ]);
});

test("P1: a write that its killed worker did not live to record is not lost", () => {
  const written = (manager: string): PoolObject => {
    const object = pool(1, 2, 3);
    object.metadata.managedFields = [
      { manager, operation: "Update", fieldsV1: { "f:spec": { "f:replicas": {} } } },
    ];
    return object;
  };
  expect(findLostUpdates([written("konverge/autoscaler")], writer, controllers)).toEqual([]);
  expect(findLostUpdates([written("demo-writer")], writer, controllers)).toHaveLength(1);
});

test("converged means: spec, status, generation and machines all agree with the load", () => {
  const facts = { scalers: [], machines: new Map([["a", 2]]) };
  expect(isConverged({ ...facts, pools: [pool(2, 2, 0)] }, () => 2)).toBe(true);
  expect(isConverged({ ...facts, pools: [pool(2, 2, 0)] }, () => 3)).toBe(false);
  expect(isConverged({ ...facts, pools: [pool(2, 1, 0)] }, () => 2)).toBe(false);
  expect(isConverged({ ...facts, machines: new Map(), pools: [pool(2, 2, 0)] }, () => 2)).toBe(
    false,
  );
});
