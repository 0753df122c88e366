import { expect, test } from "vitest";
import {
  defineWorkflow,
  TerminalError,
  type RunTracing,
  type StepContext,
} from "@konverge/workflow";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import { until } from "../../support/until.ts";

const harness = useWorkflows();

/** A body that runs until it is released, and what was seen of it. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: resolve };
}

async function held(k: StepContext, released: Promise<void>): Promise<void> {
  const aborted = new Promise((resolve) => k.signal.addEventListener("abort", resolve));
  await Promise.race([released, aborted]);
  k.signal.throwIfAborted();
}

/** Traces nothing, and calls `then` directly before each body. */
function beforeBodies(then: () => void): RunTracing {
  const run = async <T>(work: () => Promise<T>) => await work();
  const end = () => undefined;
  const body = { run, end, startCall: () => ({ headers: {}, ended: end }) };
  const startBody = () => {
    then();
    return body;
  };
  return {
    startRequest: () => ({ traceparent: "", end }),
    startExecution: () => ({ run, end, startBody, waited: end }),
  };
}

test("steps of one run are at work in several workers, and their run occupies none", async () => {
  const all = gate();
  const atWork: string[] = [];
  const make = (worker: string) =>
    defineWorkflow("spread", { version: 1 }, async (w) => {
      const base = await w.step("base", () => 40);
      const names = Array.from({ length: 4 }, (_, at) => `part ${at}`);
      const parts = await Promise.all(
        names.map((name, at) =>
          w.step(
            name,
            async () => {
              atWork.push(worker);
              await all.promise;
              return base + at;
            },
            { spread: true },
          ),
        ),
      );
      return parts;
    });
  const first = harness.openRuns();
  const second = harness.openRuns();
  const workflow = make("first");
  first.work({ workflows: [workflow], workerId: "first", concurrency: 2 });
  second.work({ workflows: [make("second")], workerId: "second", concurrency: 2 });
  const { id } = await first.start(workflow, null);
  await until("all bodies are at work", () => atWork.length === 4);
  expect(atWork.toSorted()).toEqual(["first", "first", "second", "second"]);
  expect(await first.get({ workflow: "spread", id })).toMatchObject({ status: "waiting" });
  all.open();
  expect(await ended(first, workflow, id)).toMatchObject({
    status: "done",
    result: [40, 41, 42, 43],
  });
  expect(atWork).toHaveLength(4);
  expect(harness.errors).toEqual([]);
});

test("P8: a process that stood still before the body of a step, for longer than its lease, does not begin it", async () => {
  const leaseMs = 1_000;
  const begun: string[] = [];
  let isLate = false;
  let stalls = 0;
  const standStill = () => {
    if (stalls++ > 0) return;
    const endMs = performance.now() + leaseMs;
    while (performance.now() < endMs);
    isLate = true;
    // The body would begin before any timer runs.
    setImmediate(() => (isLate = false));
  };
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await w.step("a", () => void begun.push(isLate ? "late" : "in time"), { spread: true });
  });
  const runs = harness.openRuns({ leaseMs, tracing: beforeBodies(standStill) });
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, null);
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done" });
  expect(begun).not.toContain("late");
});

test("a failed step is retried, and fails the run after its undo", async () => {
  const undone: unknown[] = [];
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    const made = await w.step("make", () => "made", {
      spread: true,
      undo: (result) => void undone.push(result),
    });
    await w.step(
      "fail",
      ({ attempt }) => {
        throw new Error(`${made}, attempt ${attempt}`);
      },
      { spread: true, retry: { attempts: 2, delay: 1 } },
    );
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], concurrency: 1 });
  const { id } = await runs.start(workflow, null);
  expect(await ended(runs, workflow, id)).toMatchObject({
    status: "failed",
    error: { message: 'step "fail" failed: made, attempt 2' },
  });
  expect(undone).toEqual(["made"]);
  expect(await runs.steps({ workflow: "spread", id })).toMatchObject([
    { name: "make", kind: "step", value: "made", attempts: 1, hasUndo: true },
    {
      name: "fail",
      kind: "step",
      attempts: 2,
      tries: [{ attempt: 1, message: "made, attempt 1" }],
    },
    { name: "undo:make" },
  ]);
});

test("a cancellation aborts a body that occupies the only slot, and the step is undone after its end", async () => {
  const events: string[] = [];
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await w.step(
      "copy",
      async (k) => {
        events.push("begun");
        try {
          await held(k, new Promise(() => undefined));
        } finally {
          events.push("aborted");
        }
      },
      { spread: true, undo: () => void events.push("undone") },
    );
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], concurrency: 1 });
  const { id } = await runs.start(workflow, null);
  await until("the body is at work", () => events.length === 1);
  await runs.cancel({ workflow: "spread", id });
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "cancelled" });
  expect(events).toEqual(["begun", "aborted", "undone"]);
});

test("a failure elsewhere cancels a body at work, and waits for its end before the undo", async () => {
  const events: string[] = [];
  const begun = gate();
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await Promise.all([
      w.step(
        "copy",
        async (k) => {
          begun.open();
          try {
            await held(k, new Promise(() => undefined));
          } finally {
            events.push("aborted");
          }
        },
        { spread: true, undo: () => void events.push("undone") },
      ),
      (async () => {
        await w.step("wait", () => begun.promise);
        throw new TerminalError("stop");
      })(),
    ]);
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], concurrency: 2 });
  const { id } = await runs.start(workflow, null);
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "failed" });
  expect(events).toEqual(["aborted", "undone"]);
});

test("the loser of a race is aborted, and the winner continues without it", async () => {
  const aborted = gate();
  const begun = gate();
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    const first = await w.race({
      slow: () =>
        w.step(
          "slow",
          async (k) => {
            begun.open();
            k.signal.addEventListener("abort", () => aborted.open());
            await aborted.promise;
          },
          { spread: true },
        ),
      stop: () => w.signal("stop"),
    });
    return first.branch;
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  await begun.promise;
  await runs.signal({ workflow: "spread", id }, "stop");
  await aborted.promise;
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done", result: "stop" });
});

test("a paused run begins no body, and continues when it is resumed", async () => {
  const attempts: number[] = [];
  const first = gate();
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await w.step(
      "copy",
      async ({ attempt }) => {
        attempts.push(attempt);
        if (attempt > 1) return;
        await first.promise;
        throw new Error("again");
      },
      { spread: true, retry: { delay: 1 } },
    );
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  const ref = { workflow: "spread", id };
  await until("the body is at work", () => attempts.length === 1);
  await runs.pause(ref);
  await inStatus(runs, workflow, id, "paused");
  first.open();
  await until("the step is held back", async () => {
    const { progress } = await runs.journal(ref);
    return progress.some(({ heldBack }) => heldBack === true);
  });
  expect(attempts).toEqual([1]);
  await runs.resume(ref);
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done" });
  expect(attempts).toEqual([1, 2]);
});

test("a terminated run aborts its body and ignores the result", async () => {
  const reasons: unknown[] = [];
  const begun = gate();
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await w.step(
      "copy",
      async (k) => {
        begun.open();
        await held(k, new Promise(() => undefined)).catch((error: unknown) => reasons.push(error));
      },
      { spread: true },
    );
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  await begun.promise;
  await runs.terminate({ workflow: "spread", id });
  await until("the body is aborted", () => reasons.length === 1);
  expect(await runs.get({ workflow: "spread", id })).toMatchObject({ status: "cancelled" });
  expect(await runs.steps({ workflow: "spread", id })).toEqual([]);
});

test("a retry from the failure runs the failed step again", async () => {
  let fails = true;
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    return await w.step(
      "check",
      () => {
        if (fails) throw new TerminalError("no");
        return "yes";
      },
      { spread: true },
    );
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "failed" });
  fails = false;
  await runs.retry({ workflow: "spread", id }, { fromFailed: true });
  await until("the run is done", async () => {
    const run = await runs.get({ workflow: "spread", id });
    return run?.status === "done";
  });
});

test("the main body of the function logs and publishes once, and the body's lines are kept", async () => {
  const lines: string[] = [];
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    w.log.info({}, "begins");
    w.set("progress", 1);
    await w.step(
      "copy",
      (k) => {
        k.log.info({}, "in the body");
        w.log.info({}, "beside the body");
      },
      { spread: true },
    );
    w.log.info({}, "ends");
  });
  const runs = harness.openRuns({ onLog: (_, { message }) => void lines.push(message) });
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  await ended(runs, workflow, id);
  const expected = ["begins", "in the body", "beside the body", "ends"];
  expect(lines).toEqual(expected);
  const logs = await runs.logs({ workflow: "spread", id });
  expect(logs.map(({ message, step }) => [message, step])).toEqual([
    ["begins", undefined],
    ["in the body", "copy"],
    ["beside the body", "copy"],
    ["ends", undefined],
  ]);
});

test("users see the tries and heartbeats of the body", async () => {
  const over = gate();
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await w.step(
      "copy",
      async ({ attempt, heartbeat, lastHeartbeat }) => {
        if (attempt === 1) {
          heartbeat({ row: 7 });
          throw new Error("again");
        }
        heartbeat(lastHeartbeat);
        await over.promise;
      },
      { spread: true, heartbeatTimeout: "10m", retry: { delay: 1 } },
    );
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  await until("the second try is seen", async () => {
    const { progress } = await runs.journal({ workflow: "spread", id });
    const [copy] = progress;
    return copy?.running === 2 && (copy.heartbeat?.progress as { row?: number })?.row === 7;
  });
  over.open();
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done" });
});

test("the body has the idempotency key of its step", async () => {
  const keys: string[] = [];
  const workflow = defineWorkflow("spread", { version: 1 }, async (w) => {
    await w.step("charge", ({ idempotencyKey }) => void keys.push(idempotencyKey), {
      spread: true,
    });
    keys.push(w.idempotencyKey("charge"));
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow] });
  const { id } = await runs.start(workflow, null);
  await ended(runs, workflow, id);
  expect(new Set(keys).size).toBe(1);
});

test("a step that the code of a worker does not call is held back until fitting code runs", async () => {
  const worker = gate();
  const make = (version: number, accepts: readonly number[]) =>
    defineWorkflow("spread", { version, accepts }, async (w) => {
      await w.step("first", () => worker.promise, { spread: true });
      return await w.step("second", () => version, { spread: true });
    });
  const [old, other, both] = [make(1, []), make(2, []), make(3, [1])];
  const runs = harness.openRuns();
  const leaving = runs.work({ workflows: [old], workerId: "old" });
  const { id } = await runs.start(old, null);
  const ref = { workflow: "spread", id };
  await until("the step is begun", async () => (await runs.journal(ref)).progress.length === 1);
  const stopped = leaving.stop({ graceMs: 0 });
  runs.work({ workflows: [other], workerId: "other" });
  await stopped;
  await inStatus(runs, old, id, "blocked");
  worker.open();
  runs.work({ workflows: [both], workerId: "both" });
  expect(await ended(runs, old, id)).toMatchObject({ status: "done", result: 3 });
});

test("a body at work is awaited, not repeated, when its step is no longer a spread one", async () => {
  const over = gate();
  const atWork: string[] = [];
  const make = (code: string) =>
    defineWorkflow("spread", { version: 1 }, async (w) => {
      const copy = async () => {
        atWork.push(code);
        await over.promise;
        return code;
      };
      const [copied] = await Promise.all([
        w.step("copy", copy, { spread: code === "old" }),
        w.signal("go"),
      ]);
      return copied;
    });
  const runs = harness.openRuns();
  const worker = runs.work({ workflows: [make("old")], workerId: "old" });
  const { id } = await runs.start(make("old"), null);
  const ref = { workflow: "spread", id };
  await until("the body is at work", () => atWork.length === 1);
  await inStatus(runs, make("old"), id, "waiting");
  worker.pause();
  runs.work({ workflows: [make("new")], workerId: "new" });
  await runs.signal(ref, "go");
  await until("the run is executed", async () => (await runs.steps(ref)).length === 1);
  over.open();
  expect(await ended(runs, make("old"), id)).toMatchObject({ status: "done", result: "old" });
  expect(atWork).toEqual(["old"]);
});

test("a step that has begun in its run continues there when it becomes a spread one", async () => {
  const attempts: number[] = [];
  const make = (spread: boolean) =>
    defineWorkflow("spread", { version: 1 }, async (w) => {
      const copy = async (k: StepContext) => {
        attempts.push(k.attempt);
        if (!spread) await held(k, new Promise(() => undefined));
      };
      await w.step("copy", copy, { spread, heartbeatTimeout: "10m", retry: { delay: 1 } });
    });
  const runs = harness.openRuns();
  const worker = runs.work({ workflows: [make(false)], workerId: "old" });
  const { id } = await runs.start(make(false), null);
  await until("the body is at work", () => attempts.length === 1);
  await worker.stop({ graceMs: 0 });
  runs.work({ workflows: [make(true)], workerId: "new" });
  expect(await ended(runs, make(true), id)).toMatchObject({ status: "done" });
  expect(attempts).toHaveLength(2);
});
