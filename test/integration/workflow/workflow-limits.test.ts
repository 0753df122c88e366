import { expect, test } from "vitest";
import { defineWorkflow, type RunWarning } from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();

function openWarned() {
  const warned: (RunWarning & { readonly id: string })[] = [];
  const runs = harness.openRuns({
    onWarning: ({ id }, warning) => warned.push({ id, ...warning }),
  });
  return { runs, warned };
}

test("warns once at half of the step limit, and blocks the run at the limit until it is cancelled", async () => {
  const undone: string[] = [];
  const workflow = defineWorkflow("steps", { version: 1 }, async (w) => {
    await w.step("first", async () => 1, { undo: () => void undone.push("first") });
    for (let n = 0; n < 600; n += 1) await w.step(`a${n}`, async () => n);
    await w.signal("go");
    for (let n = 0; n < 600; n += 1) await w.step(`b${n}`, async () => n);
  });
  const { runs, warned } = openWarned();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  const ref = { workflow: "steps", id };
  const waitingRun = await inStatus(runs, workflow, id, "waiting");
  const warning = {
    code: "many_steps",
    message:
      "the run has 500 recorded steps and is blocked at 1000; increase limits.steps of the workflow, raise it for this run with konverge run raise, or move parts to child workflows",
  };
  expect(waitingRun.warnings).toEqual([warning]);
  await runs.signal(ref, "go");
  const run = await inStatus(runs, workflow, id, "blocked");
  expect(run).toMatchObject({
    blockedReason:
      "the run has 1000 recorded steps, the limit is 1000; increase limits.steps of the workflow, raise it for this run with konverge run raise, or move parts to child workflows",
    warnings: [warning],
  });
  expect(warned).toEqual([{ id, ...warning }]);
  expect(undone).toEqual([]);
  await runs.cancel(ref);
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "cancelled" });
  expect(undone).toEqual(["first"]);
  const { runs: listed } = await runs.list("steps");
  expect(listed.map(({ warnings }) => warnings)).toEqual([[warning]]);
});

test("warns and blocks at the limit of record bytes", async () => {
  const workflow = defineWorkflow("bytes", { version: 1 }, async (w) => {
    await Promise.all([w.step("left", async () => 1), w.step("right", async () => 2)]);
    for (let n = 0; n < 100; n += 1) await w.step(`s${n}`, async () => "x".repeat(60_000));
  });
  const { runs, warned } = openWarned();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  const run = await inStatus(runs, workflow, id, "blocked");
  expect(run.blockedReason).toMatch(/^the run has 42\d{5} bytes of records, the limit is 4194304/);
  // 4 MiB in records of 60,000 bytes, and the two before.
  expect(await runs.steps({ workflow: "bytes", id })).toHaveLength(70 + 2);
  expect(warned).toEqual([
    { id, code: "many_bytes", message: expect.stringContaining("is blocked at") },
  ]);
  expect(run.warnings).toEqual([{ code: "many_bytes", message: warned[0]?.message }]);
});

test("a blocked run continues when its own limits are raised, also in later rounds", async () => {
  const workflow = defineWorkflow(
    "raised",
    { version: 1, limits: { steps: 5 } },
    async (w, round: number): Promise<number> => {
      for (let n = 0; n < 8; n += 1) await w.step(`s${n}`, async () => n);
      return round === 2 ? round : await w.continueWith(round + 1);
    },
  );
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const ref = { workflow: "raised", id: "r" };
  await runs.start(workflow, 1, { id: "r" });
  await inStatus(runs, workflow, "r", "blocked");
  await runs.raise(ref, { steps: 7 });
  await until("the run is blocked at 7", async () =>
    (await runs.get(ref))?.blockedReason?.includes("the limit is 7"),
  );
  await expect(runs.raise(ref, { steps: 6 })).rejects.toMatchObject({
    code: "invalid_request",
    message:
      "steps would change nothing: the run has recorded 7 steps (got 6); pass a higher limit",
  });
  await runs.raise(ref, { bytes: 1_000 });
  await expect(runs.raise(ref, { steps: 20, bytes: 999 })).rejects.toMatchObject({
    message:
      "bytes would change nothing: the limit of the run is 1000 (got 999); pass a higher limit",
    issues: [{ pointer: "/bytes" }],
  });
  await runs.raise(ref, { steps: 10, bytes: 1_000 });
  expect(await ended(runs, workflow, "r")).toMatchObject({
    status: "done",
    result: 2,
    limits: { steps: 10, bytes: 1_000 },
  });
  await expect(runs.raise(ref, { steps: 20 })).rejects.toMatchObject({ code: "run_ended" });
  await expect(runs.raise(ref, {})).rejects.toMatchObject({ code: "invalid_request" });
  await expect(runs.raise(ref, { bytes: 1e9 })).rejects.toMatchObject({
    code: "invalid_request",
    message: "limits.bytes must be an integer from 1 to 67108864 (got 1000000000)",
  });
  const none = { workflow: "raised", id: "none" };
  await expect(runs.raise(none, { steps: 1 })).rejects.toMatchObject({ code: "not_found" });
});

test("limits a signal's payload like an input", async () => {
  const workflow = defineWorkflow("waits", { version: 1 }, async (w) => await w.signal("go"));
  const runs = harness.openRuns();
  const { id } = await runs.start(workflow, undefined);
  const ref = { workflow: "waits", id };
  await expect(runs.signal(ref, "go", { payload: "x".repeat(70_000) })).rejects.toMatchObject({
    code: "invalid_request",
    message:
      'the payload of signal "go" has 70002 bytes, the limit is 65536; pass a reference instead of the data',
  });
});

test("a large value is compressed in Redis, and the same in every execution", async () => {
  const seen = new Set<number>();
  const workflow = defineWorkflow("large", { version: 1 }, async (w) => {
    const lines = await w.step("lines", async () =>
      Array.from({ length: 20_000 }, (_, n) => `object team-a/web-${n}`),
    );
    seen.add(lines.length);
    await w.signal("go");
    return lines.at(-1);
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  await inStatus(runs, workflow, id, "waiting");
  const [name = ""] = await harness.redis.keys(`${harness.prefix}:*/steps/large/${id}`);
  expect(await harness.redis.hstrlen(name, "lines")).toBeLessThan(200_000);
  await runs.signal({ workflow: "large", id }, "go");
  expect(await ended(runs, workflow, id)).toMatchObject({ result: "object team-a/web-19999" });
  expect([...seen]).toEqual([20_000]);
  const [record] = await runs.steps({ workflow: "large", id });
  expect(record?.value).toHaveLength(20_000);
});

test("a worker sets the limit of a record, and the interval in which a blocked run is rechecked", async () => {
  const sizes = defineWorkflow("sizes", { version: 1 }, async (w, input: { bytes: number }) => {
    const text = await w.step("a", () => "x".repeat(input.bytes), { retry: { attempts: 1 } });
    return text.length;
  });
  let isFixed = false;
  const broken = defineWorkflow("broken", { version: 1 }, async (w) => {
    await w.step("a", () => null);
    if (!isFixed) throw new TypeError("a bug");
    return "fixed";
  });
  const runs = harness.openRuns();
  runs.work({
    workflows: [sizes, broken],
    recordLimitBytes: 2_048,
    recheckMs: 1_000,
    sweepEveryMs: 1_000,
  });
  await runs.start(sizes, { bytes: 1_000 }, { id: "small" });
  await runs.start(sizes, { bytes: 3_000 }, { id: "large" });
  expect(await ended(runs, sizes, "small")).toMatchObject({ status: "done", result: 1_000 });
  expect((await ended(runs, sizes, "large")).error?.message).toMatch(
    /has \d+ bytes, the limit is 2048; return a reference instead of the data, or raise runRecordLimitKiB/,
  );
  await runs.start(broken, undefined, { id: "b" });
  const blocked = await inStatus(runs, broken, "b", "blocked");
  expect(blocked.waitingUntilMs! - blocked.startedAtMs!).toBeLessThan(60_000);
  isFixed = true;
  expect(await ended(runs, broken, "b")).toMatchObject({ status: "done", result: "fixed" });
});
