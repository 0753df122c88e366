import { startTestCluster, type TestClusterOptions } from "../../../apps/cli/src/testing/index.ts";
import {
  conditions,
  defineController,
  defineResource,
  generationChanged,
  reportProgress,
} from "@konverge/engine";
import { TerminalError } from "@konverge/core";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { z } from "zod";

const Task = defineResource({
  group: "cluster.test.konverge.dev",
  version: "v1",
  kind: "Task",
  spec: z.object({ fails: z.boolean().default(false) }),
  status: z.object({ observedGeneration: z.int(), conditions }),
});
const Other = defineResource({
  group: "cluster.test.konverge.dev",
  version: "v1",
  kind: "Other",
  spec: z.object({}),
});

const cleaned: string[] = [];
const tasks = defineController({
  name: "tasks",
  for: Task,
  async reconcile({ object: task, kube }) {
    if (task.spec.fails) throw new TerminalError("this task cannot be done");
    await kube.mutateStatus(task, (draft) => {
      reportProgress(draft, { state: "ready", reason: "Done" });
    });
  },
  async cleanup({ object }) {
    cleaned.push(object.metadata.name);
  },
});
const start = (options: Partial<TestClusterOptions> = {}) =>
  startTestCluster({ controllers: [tasks], ...options });
const named = (name: string, fails = false) => ({ metadata: { name }, spec: { fails } });

test("reconciled waits for the last applied change, not for an earlier attempt", async () => {
  await using k = await start();
  const first = await k.reconciled(await k.apply(Task, named("a")));
  expect(first.status?.observedGeneration).toBe(1);
  const failing = await k.apply(Task, named("a", true));
  expect(failing.metadata.generation).toBe(2);
  const again = await k.reconciled(await k.apply(Task, named("a", false)));
  expect(again.status?.observedGeneration).toBe(3);
  expect((await k.attempts(again)).at(-1)?.outcome).toBe("done");
});

test("starts only the API server with the given kinds, without controllers", async () => {
  await using k = await start({ controllers: [], resources: [Other] });
  const other = await k.apply(Other, { metadata: { name: "a" }, spec: {} });
  expect((await k.kube.get(Other, other.metadata)).metadata.uid).toBe(other.metadata.uid);
  expect([k.log, k.calls()]).toEqual([[], []]);
});

test("ignores attempts at older versions, so waiting for a filtered change times out", async () => {
  const picky = defineController({
    name: "picky",
    for: Task,
    predicate: generationChanged,
    reconcile: async () => undefined,
  });
  await using k = await start({ controllers: [picky], deadlineMs: 8_000 });
  await k.reconciled(await k.apply(Task, named("f")));
  const labelled = { metadata: { name: "f", labels: { colour: "blue" } }, spec: { fails: false } };
  await expect(k.reconciled(await k.apply(Task, labelled))).rejects.toThrow(
    "attempt 1 of picky ended with done",
  );
});

test("reports the last attempt at the deadline", async () => {
  await using k = await start({ resources: [Other], deadlineMs: 5_000 });
  const failing = await k.apply(Task, named("b", true));
  await expect(k.reconciled(failing)).rejects.toThrow(
    /waited 5000 ms for Task b to be reconciled: attempt 1 of tasks ended with terminal, .*this task cannot be done/,
  );
  const other = await k.apply(Other, { metadata: { name: "c" } });
  await expect(k.reconciled(other)).rejects.toThrow(/no controller of this test reconciles Other/);
  await expect(k.gone(other)).rejects.toThrow(/waited 5000 ms for Other c to be deleted/);
});

test("gone includes the cleanup; calls are those of the worker and can be cleared", async () => {
  await using k = await start();
  const task = await k.reconciled(await k.apply(Task, named("d")));
  expect(k.calls({ type: Task, subresource: "status", code: 200 })).toMatchObject([
    { verb: "patch", name: "d", namespace: "default" },
  ]);
  k.clearCalls();
  expect(k.calls({ type: Task })).toEqual([]);
  await k.delete(task);
  await k.gone(task);
  expect(cleaned).toContain("d");
  expect(k.calls({ verb: "delete" })).toEqual([]);
});

test("stop ends open waits and leaves nothing in Redis", async () => {
  const redis = new Redis(process.env["REDIS_URL"] ?? "");
  // Other test files use this Redis too, with other names.
  const keys = async () =>
    (await redis.keys("test-*")).filter((key) => /^test-[0-9a-f]{12}:/.test(key)).length;
  const before = await keys();
  const k = await start();
  await k.reconciled(await k.apply(Task, named("e")));
  expect(await keys()).toBeGreaterThan(before);
  await k.stop();
  expect(await keys()).toBe(before);
  await expect(fetch(k.kube.server)).rejects.toThrow("fetch failed");
  await redis.quit();
});
