import { expect, test } from "vitest";
import { defineWorkflow, TerminalError, type AnyWorkflow } from "@konverge/workflow";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const ONCE = { retry: { attempts: 1 } };

function work(...workflows: AnyWorkflow[]) {
  const runs = harness.openRuns();
  runs.work({ workflows, workerId: "test" });
  return runs;
}

/** Three steps; the second fails while `broken` is set. */
function makeDeploy(options: { readonly undo?: boolean } = {}) {
  const state = { broken: true, bodies: [] as string[], keys: [] as string[], ids: [] as string[] };
  const workflow = defineWorkflow("deploy", { version: 2 }, async (w, input: { name: string }) => {
    state.ids.push(w.id("object"));
    const undo = options.undo === true ? { undo: () => void state.bodies.push("undo pull") } : {};
    await w.step("pull", () => void state.bodies.push(`pull ${input.name}`), undo);
    await w.step(
      "push",
      ({ idempotencyKey }) => {
        state.bodies.push("push");
        state.keys.push(idempotencyKey);
        if (state.broken) throw new Error("quota");
      },
      ONCE,
    );
    return await w.step("tell", () => state.bodies.push("tell"));
  });
  return { state, workflow };
}

test("retries a failed run as one new run with its input and key, also if requested twice", async () => {
  const { state, workflow } = makeDeploy();
  const runs = work(workflow);
  const start = { id: "r", key: "web", by: "ann" };
  await runs.start(workflow, { name: "web" }, start);
  await ended(runs, workflow, "r");
  const action = { by: "bob", reason: "the quota was raised" };
  const again = async (id: string) => (await runs.retry({ workflow: "deploy", id }, action)).id;
  expect(await Promise.all([again("r"), again("r")])).toEqual(["r~2", "r~2"]);
  const second = await ended(runs, workflow, "r~2");
  expect(second).toMatchObject({ status: "failed", key: "web", by: "bob", version: 2 });
  expect(second.retry).toEqual({ originalRun: "r", ...action });
  state.broken = false;
  expect(await again("r")).toBe("r~3");
  expect(await ended(runs, workflow, "r~3")).toMatchObject({ status: "done", result: 7 });
  await expect(again("r~3")).rejects.toMatchObject({ code: "run_ended" });
  expect(await again("r~2")).toBe("r~3");
  expect(state.bodies.filter((body) => body === "pull web")).toHaveLength(3);
  await expect(again("nobody")).rejects.toMatchObject({ code: "not_found" });
});

test("a retry from the failed step continues the same run and keeps its idempotency keys", async () => {
  const { state, workflow } = makeDeploy();
  const runs = work(workflow);
  const ref = { workflow: "deploy", id: "r" };
  await runs.start(workflow, { name: "web" }, { id: "r", key: "web" });
  await ended(runs, workflow, "r");
  state.broken = false;
  const action = { by: "bob", reason: "the quota was raised" };
  expect(await runs.retry(ref, { fromFailed: true, ...action })).toEqual(ref);
  const run = await ended(runs, workflow, "r");
  expect(run).toMatchObject({ status: "done", result: 4, retry: action });
  expect(run.error).toBeUndefined();
  expect(state.bodies).toEqual(["pull web", "push", "push", "tell"]);
  expect(new Set(state.keys).size).toBe(1);
  expect(new Set(state.ids).size).toBe(1);
  const steps = await runs.steps(ref);
  expect(steps.map(({ name, seq }) => [name, seq])).toEqual([
    ["pull", 1],
    ["push", 2],
    ["tell", 3],
  ]);
  const names = runNames(harness.prefix, "default", "deploy");
  expect(await harness.redis.zcard(`${names.statuses}failed`)).toBe(0);
  expect(await harness.redis.zrange(`${names.statuses}done`, "0", "-1")).toEqual(["r"]);
});

test("rejects a retry of an undone run, an active run, and a run whose key is taken", async () => {
  const { state, workflow } = makeDeploy({ undo: true });
  const runs = work(workflow);
  const ref = { workflow: "deploy", id: "r" };
  await runs.start(workflow, { name: "web" }, { id: "r", key: "web" });
  await ended(runs, workflow, "r");
  expect(state.bodies.at(-1)).toBe("undo pull");
  await expect(runs.retry(ref, { fromFailed: true })).rejects.toMatchObject({
    code: "run_compensated",
    message: expect.stringContaining('has undone "pull"'),
  });
  const waiting = defineWorkflow("waiting", { version: 1 }, async (w) => await w.signal("go"));
  const others = work(waiting);
  await others.start(waiting, undefined, { id: "a", key: "k" });
  await inStatus(others, waiting, "a", "waiting");
  const a = { workflow: "waiting", id: "a" };
  await expect(others.retry(a)).rejects.toMatchObject({ code: "run_active" });
  await others.cancel(a, { by: "ann" });
  await ended(others, waiting, "a");
  await others.start(waiting, undefined, { id: "b", key: "k" });
  for (const fromFailed of [true, false]) {
    await expect(others.retry(a, { fromFailed })).rejects.toMatchObject({ code: "run_exists" });
  }
});

test("a cancelled run resumes where it was cancelled, and can be cancelled again", async () => {
  const workflow = defineWorkflow("approved", { version: 1 }, async (w) => {
    await w.step("draft", () => "draft");
    return await w.signal("approve");
  });
  const runs = work(workflow);
  const ref = { workflow: "approved", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  for (const by of ["ann", "bob"]) {
    await inStatus(runs, workflow, "r", "waiting");
    await runs.cancel(ref, { by });
    expect(await ended(runs, workflow, "r")).toMatchObject({ status: "cancelled", cancel: { by } });
    await runs.retry(ref, { fromFailed: true });
  }
  await runs.signal(ref, "approve", { payload: 1 });
  const run = await ended(runs, workflow, "r");
  expect(run).toMatchObject({ status: "done", result: 1 });
  expect(run.cancel).toBeUndefined();
});

test("resumes failed children with their parent, unless they were undone", async () => {
  const { state, workflow } = makeDeploy();
  const fleet = defineWorkflow("fleet", { version: 1 }, async (w, names: readonly string[]) => {
    const results = [];
    for (const name of names) results.push(await w.child(`deploy ${name}`, workflow, { name }));
    return results.length;
  });
  const runs = work(workflow, fleet);
  const ref = { workflow: "fleet", id: "f" };
  await runs.start(fleet, ["web", "db"], { id: "f" });
  await ended(runs, fleet, "f");
  state.broken = false;
  await runs.retry(ref, { fromFailed: true });
  expect(await ended(runs, fleet, "f")).toMatchObject({ status: "done", result: 2 });
  expect(state.bodies).toEqual(["pull web", "push", "push", "tell", "pull db", "push", "tell"]);
  const [first] = await runs.steps(ref);
  expect(first?.child).toEqual({ workflow: "deploy", id: "f.deploy%20web" });

  const undoing = makeDeploy({ undo: true });
  const other = harness.openRuns({ cluster: "other" });
  const parent = defineWorkflow("fleet", { version: 1 }, async (w) => {
    await w.child("deploy", undoing.workflow, { name: "web" });
  });
  other.work({ workflows: [undoing.workflow, parent], workerId: "other" });
  await other.start(parent, undefined, { id: "f" });
  await ended(other, parent, "f");
  await expect(other.retry(ref, { fromFailed: true })).rejects.toMatchObject({
    code: "run_compensated",
    message: expect.stringContaining("run f.deploy of"),
  });
  expect((await other.get(ref))?.status).toBe("failed");
});

test("rechecks a blocked run immediately, also one with a waiting undo", async () => {
  const state = { broken: true, undone: 0 };
  const workflow = defineWorkflow("undoing", { version: 1 }, async (w) => {
    await w.step("make", () => 1, {
      ...ONCE,
      undo: () => {
        state.undone += 1;
        if (state.broken) throw new Error("still in use");
      },
    });
    throw new TerminalError("no");
  });
  const runs = work(workflow);
  const ref = { workflow: "undoing", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await inStatus(runs, workflow, "r", "blocked");
  state.broken = false;
  await runs.retry(ref);
  expect(await ended(runs, workflow, "r")).toMatchObject({ status: "failed" });
  expect(state.undone).toBe(2);
});

test("an update whose record a retry drops can be sent again with its id", async () => {
  let isBroken = true;
  const workflow = defineWorkflow("approving", { version: 1 }, async (w) => {
    const schema = { parse: (payload: unknown) => payload as number };
    await w.step("before", () => null);
    const failed = await w
      .step(
        "fail",
        () => {
          if (isBroken) throw new Error("broken");
        },
        ONCE,
      )
      .catch((error: unknown) => error);
    const amount = await w.handle("amount", schema, (payload) => payload * 2);
    if (failed !== undefined) throw failed;
    return amount;
  });
  const ref = { workflow: workflow.name, id: "r" };
  const runs = work(workflow);
  await runs.start(workflow, undefined, { id: "r" });
  const send = () => runs.update(ref, "amount", { id: "u", payload: 4 });
  await send();
  await ended(runs, workflow, "r");
  expect(await runs.answerTo(ref, "u")).toMatchObject({ kind: "accepted", value: 8 });
  isBroken = false;
  await runs.retry(ref, { fromFailed: true });
  await inStatus(runs, workflow, "r", "waiting");
  expect(await runs.answerTo(ref, "u")).toBeUndefined();
  await send();
  expect(await ended(runs, workflow, "r")).toMatchObject({ status: "done", result: 8 });
});
