import { expect, test } from "vitest";
import { defineWorkflow, openWorkflows, type RunRef } from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { runExecution } from "../../../libs/workflow/src/execution/run-execution.ts";
import { runSpreadStep } from "../../../libs/workflow/src/execution/run-spread-step.ts";
import { cancelRun } from "../../../libs/workflow/src/execution/cancel-run.ts";
import { createChildStarter } from "../../../libs/workflow/src/create-child-starter.ts";
import { useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const NO_WAKE = { wake: async () => undefined, notify: async () => undefined };
const child = defineWorkflow("child", { version: 1 }, async (w) => await w.signal<number>("go"));
const parent = defineWorkflow("parent", { version: 1 }, async (w, children: number) => {
  const names = Array.from({ length: children }, (_, n) => `child ${n}`);
  return (await Promise.all(names.map((name) => w.child(name, child, undefined)))).length;
});

/** The options of an execution outside of a worker. */
const BY_HAND = {
  stopped: new AbortController().signal,
  clock: () => performance.now(),
  random: () => 0,
};

function openCountingStore() {
  const calls = { count: 0 };
  const store = createRedisRunStore({
    call: async (run) => {
      calls.count += 1;
      return await run(harness.redis);
    },
    prefix: harness.prefix,
    cluster: "default",
    retentionMs: 3_600_000,
  });
  return { store, calls };
}

let lease = 0;

async function claim(store: ReturnType<typeof createRedisRunStore>, ref: RunRef) {
  lease += 1;
  const held = await store.claim(ref, { lease, owner: `o${lease}` });
  if (held.kind !== "held") throw new Error(`${ref.id} is ${held.kind}`);
  return held;
}

/** Runs a parent by hand, with a wake-up after the end of each child. Returns its calls of Redis. */
async function callsFor(children: number): Promise<number> {
  const { prefix, target } = harness;
  const { store, calls } = openCountingStore();
  const starter = createChildStarter(store, NO_WAKE);
  const execute = async (workflow: typeof parent | typeof child, id: string) => {
    const held = await claim(store, { workflow: workflow.name, id });
    return await runExecution({ ...BY_HAND, store, workflow, held, startChild: starter });
  };
  const runs = openWorkflows({ redis: target, prefix });
  const id = `p${children}`;
  await runs.start(parent, children, { id });
  await execute(parent, id);
  const ids = (await runs.list("child", { limit: 500 })).runs.flatMap((run) =>
    run.parent?.id === id ? [run.id] : [],
  );
  expect(ids).toHaveLength(children);
  let spent = calls.count;
  for (const childId of ids) {
    await runs.signal({ workflow: "child", id: childId }, "go", { payload: 1 });
    await execute(child, childId);
    const before = calls.count;
    await execute(parent, id);
    spent += calls.count - before;
  }
  await runs.close();
  expect(await store.get({ workflow: "parent", id })).toMatchObject({
    status: "done",
    result: children,
  });
  return spent;
}

test("a parent's calls of Redis grow with its children, not with children times wake-ups", async () => {
  const perChild = [];
  for (const children of [10, 100, 200]) perChild.push((await callsFor(children)) / children);
  const [few = 0, ...more] = perChild;
  expect(few).toBeLessThan(12);
  for (const each of more) expect(each).toBeLessThanOrEqual(few);
});

const patient = defineWorkflow("child", { version: 1 }, async (w) => {
  for (const name of ["one", "two", "three"]) await w.signal(name).catch(() => undefined);
});

/** Cancels a parent twice by hand; each of its children catches that. Returns the calls of Redis for the second time. */
async function callsForSecondCancel(children: number): Promise<number> {
  const { store, calls } = openCountingStore();
  const wake = async () => void (calls.count += 1);
  const starter = createChildStarter(store, { ...NO_WAKE, wake });
  const execute = async (workflow: typeof parent | typeof patient, ref: RunRef) => {
    const held = await claim(store, ref);
    return await runExecution({ ...BY_HAND, store, workflow, held, startChild: starter });
  };
  const ref = { workflow: "parent", id: `c${children}` };
  await store.start({ ...ref, version: 1, input: children });
  await execute(parent, ref);
  const ids = Array.from({ length: children }, (_, n) => `${ref.id}.child%20${n}`);
  const kids = ids.map((id) => ({ workflow: "child", id }));
  const cancel = async () => {
    await cancelRun({ ...NO_WAKE, store, wake }, ref, {}, { resumes: true });
    await execute(parent, ref);
  };
  await cancel();
  for (const kid of kids) await execute(patient, kid);
  const before = calls.count;
  await cancel();
  const spent = calls.count - before;
  for (const kid of kids) await execute(patient, kid);
  const caught = await Promise.all(kids.map(async (kid) => (await store.steps(kid)).size));
  expect(caught).toEqual(kids.map(() => 2));
  return spent;
}

test("a second cancellation reaches each child, for three calls of Redis and the queue per child", async () => {
  const [few, many] = [await callsForSecondCancel(10), await callsForSecondCancel(150)];
  expect(many - few).toBe(3 * 140);
});

const spreading = defineWorkflow("spreading", { version: 1 }, async (w, steps: number) => {
  const names = Array.from({ length: steps }, (_, n) => `step ${n}`);
  const one = (name: string) => w.step(name, () => 1, { spread: true });
  return (await Promise.all(names.map(one))).length;
});

/** Runs spread steps by hand, with a wake-up of their run after each. Returns the calls of Redis and of the queue. */
async function callsForSpread(steps: number): Promise<number> {
  const { prefix, target } = harness;
  const { store, calls } = openCountingStore();
  const woken: RunRef[] = [];
  const wake = async (ref: RunRef) => {
    calls.count += 1;
    woken.push(ref);
  };
  const starter = createChildStarter(store, { wake, notify: async () => undefined });
  const execute = async (ref: RunRef) => {
    const options = { ...BY_HAND, store, workflow: spreading, held: await claim(store, ref) };
    return ref.workflow === "spreading"
      ? await runExecution({ ...options, startChild: starter, spread: { ...starter, wake } })
      : await runSpreadStep({ ...options, wake, onError: () => undefined });
  };
  const runs = openWorkflows({ redis: target, prefix });
  const run = { workflow: "spreading", id: `s${steps}` };
  await runs.start(spreading, steps, { id: run.id });
  await execute(run);
  const begun = woken.splice(0);
  expect(begun).toHaveLength(steps);
  for (const ref of begun) {
    await execute(ref);
    await wake(run);
    await execute(run);
  }
  await runs.close();
  expect(await store.get(run)).toMatchObject({ status: "done", result: steps });
  return calls.count;
}

test("spread steps cost calls of Redis by their number, not by that times the wake-ups", async () => {
  const perStep = [];
  for (const steps of [10, 50, 100]) perStep.push((await callsForSpread(steps)) / steps);
  const [few = 0, ...more] = perStep;
  expect(few).toBeLessThan(14);
  for (const each of more) expect(each).toBeLessThanOrEqual(few);
});
