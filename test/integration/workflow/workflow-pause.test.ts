import { expect, test } from "vitest";
import {
  defineWorkflow,
  keyOfRun,
  queueOfWorkflow,
  TerminalError,
  type AnyWorkflow,
} from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const action = { by: "ann", reason: "freeze" };
const SHORT_MS = 50;

function work(...workflows: AnyWorkflow[]) {
  const runs = harness.openRuns();
  const worker = runs.work({ workflows, workerId: "test" });
  return { runs, worker };
}

/** A body that begins, and ends when the test says so. */
function body() {
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const run = async () => {
    begin();
    await released;
    return "recorded";
  };
  return { began, release, run };
}

test("a running body ends and is recorded, and no other begins until the run is resumed", async () => {
  const bodies: string[] = [];
  const long = body();
  const workflow = defineWorkflow("steps", { version: 1 }, async (w) => {
    await w.step("long", long.run);
    await w.step("next", () => void bodies.push("next"));
    return bodies.length;
  });
  const { runs } = work(workflow);
  const ref = { workflow: "steps", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await long.began;
  expect(await runs.pause(ref, action)).toMatchObject({ effect: "pausing" });
  long.release();
  expect(await inStatus(runs, workflow, "r", "paused")).toMatchObject({ pause: action });
  expect((await runs.steps(ref)).map(({ name }) => name)).toEqual(["long"]);
  expect(bodies).toEqual([]);
  expect(await runs.resume(ref)).toEqual({ effect: "resumed" });
  expect(await ended(runs, workflow, "r")).toMatchObject({ status: "done", result: 1 });
  await expect(runs.pause(ref)).rejects.toMatchObject({ code: "run_ended" });
});

test("signals are kept and timers that are due fire when the run is resumed", async () => {
  const workflow = defineWorkflow("waits", { version: 1 }, async (w) => {
    const slept = w.sleep("short", SHORT_MS).then(() => "slept");
    const [one, two] = await Promise.all([w.signal<string>("go"), slept]);
    return [one, two];
  });
  const { runs } = work(workflow);
  const ref = { workflow: "waits", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await until("both branches wait", async () => (await runs.get(ref))?.waits?.length === 2);
  const { effect } = await runs.pause(ref, action);
  if (effect === "pausing") await inStatus(runs, workflow, "r", "paused");
  await runs.signal(ref, "go", { payload: "on" });
  expect(await runs.pause(ref)).toEqual({
    effect: "none",
    note: "the run is already paused",
  });
  const queue = harness.open({ controller: queueOfWorkflow("waits") });
  // Every wake-up of the run leads to a claim; none of them consumes anything.
  const isIdle = async () => {
    const key = await queue.getKey(keyOfRun(ref, "default"));
    return key === undefined || key.phase === "idle";
  };
  await until("the wake-ups are handled", isIdle);
  expect((await runs.get(ref))?.status).toBe("paused");
  expect(await runs.unconsumedSignals(ref)).toMatchObject([{ name: "go" }]);
  expect(await runs.resume(ref)).toEqual({ effect: "resumed" });
  expect(await ended(runs, workflow, "r")).toMatchObject({ result: ["on", "slept"] });
});

test("a spread step that was held back begins when the run is resumed beside a running body", async () => {
  const long = body();
  let tries = 0;
  const first = body();
  const workflow = defineWorkflow("held", { version: 1 }, async (w) => {
    const spread = async () => {
      tries += 1;
      if (tries > 1) return;
      await first.run();
      throw new Error("fails once");
    };
    await Promise.all([
      w.step("long", long.run),
      w.step("spread", spread, { spread: true, retry: { attempts: 2, delay: 1 } }),
    ]);
  });
  const { runs } = work(workflow);
  const ref = { workflow: "held", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await Promise.all([long.began, first.began]);
  await runs.pause(ref, action);
  first.release();
  const { progress } = await until("the second try is held back", async () => {
    const journal = await runs.journal(ref);
    return journal.progress.some(({ heldBack }) => heldBack === true) ? journal : undefined;
  });
  expect(progress).toHaveLength(1);
  await runs.resume(ref);
  await until("the second try has begun", () => tries === 2);
  long.release();
  expect(await ended(runs, workflow, "r")).toMatchObject({ status: "done" });
});

test("a run that is undone rests between two undos", async () => {
  const undone: string[] = [];
  const second = body();
  const workflow = defineWorkflow("undo", { version: 1 }, async (w) => {
    await w.step("one", () => 1, { undo: () => void undone.push("one") });
    await w.step("two", () => 2, {
      undo: async () => {
        undone.push("two");
        await second.run();
      },
    });
    throw new TerminalError("no");
  });
  const { runs } = work(workflow);
  const ref = { workflow: "undo", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await second.began;
  expect(await runs.pause(ref, action)).toMatchObject({ effect: "pausing" });
  second.release();
  await inStatus(runs, workflow, "r", "paused");
  expect(undone).toEqual(["two"]);
  await runs.resume(ref);
  expect(await ended(runs, workflow, "r")).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["two", "one"]);
});

test("branches that wait while a body runs are paused", async () => {
  const long = body();
  let begun = 0;
  const workflow = defineWorkflow("branches", { version: 1 }, async (w) => {
    const other = async () => {
      await w.signal("go");
      await w.step("other", () => void (begun += 1));
    };
    await Promise.all([w.step("long", long.run), other()]);
  });
  const { runs } = work(workflow);
  const ref = { workflow: "branches", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await long.began;
  await runs.pause(ref, action);
  await runs.signal(ref, "go");
  long.release();
  await inStatus(runs, workflow, "r", "paused");
  const begunBefore = begun;
  await runs.resume(ref);
  await ended(runs, workflow, "r");
  expect([begunBefore <= 1, begun]).toEqual([true, 1]);
});

test("cancelling a paused run resumes it for its undo, and terminating it ends it", async () => {
  let undone = 0;
  const workflow = defineWorkflow("stop", { version: 1 }, async (w) => {
    await w.step("one", () => 1, { undo: () => void (undone += 1) });
    await w.signal("never");
  });
  const { runs } = work(workflow);
  const paused = async (id: string) => {
    await runs.start(workflow, undefined, { id });
    await inStatus(runs, workflow, id, "waiting");
    await runs.pause({ workflow: "stop", id }, action);
    await inStatus(runs, workflow, id, "paused");
    return { workflow: "stop", id };
  };
  expect(await runs.cancel(await paused("a"), { by: "bob" })).toEqual({ effect: "requested" });
  expect(await ended(runs, workflow, "a")).toMatchObject({ status: "cancelled" });
  expect(undone).toBe(1);
  await runs.terminate(await paused("b"), { by: "bob" });
  const run = await runs.get({ workflow: "stop", id: "b" });
  expect(run).toMatchObject({ status: "cancelled", terminated: { by: "bob" } });
  expect(undone).toBe(1);
});

test("a parent waits for its paused child, and a queued run is paused before it begins", async () => {
  const child = defineWorkflow("child", { version: 1 }, async (w) => await w.signal("go"));
  const parent = defineWorkflow("parent", { version: 1 }, async (w) =>
    w.child("kid", child, undefined as never),
  );
  const { runs } = work(child, parent);
  await runs.start(parent, undefined, { id: "p" });
  const kid = { workflow: "child", id: "p.kid" };
  await inStatus(runs, child, kid.id, "waiting");
  await runs.pause(kid, action);
  await inStatus(runs, child, kid.id, "paused");
  await runs.signal(kid, "go", { payload: 7 });
  await inStatus(runs, parent, "p", "waiting");
  await runs.resume(kid);
  expect(await ended(runs, parent, "p")).toMatchObject({ result: 7 });
});

test("the pausing of a run whose worker was lost ends with the next claim", async () => {
  let begun = 0;
  const workflow = defineWorkflow("lost", { version: 1 }, async (w) => {
    await w.step("body", async ({ signal }) => {
      begun += 1;
      if (begun > 1) return;
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
      });
    });
  });
  const { runs, worker } = work(workflow);
  const ref = { workflow: "lost", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await until("the body begins", () => begun === 1);
  expect(await runs.pause(ref, action)).toMatchObject({ effect: "pausing" });
  await worker.kill();
  runs.work({ workflows: [workflow], workerId: "next" });
  await inStatus(runs, workflow, "r", "paused");
  expect(begun).toBe(1);
  await runs.resume(ref);
  await ended(runs, workflow, "r");
  expect(begun).toBe(2);
});
