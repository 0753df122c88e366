import { expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, type WorkflowContext } from "../define/define-workflow.ts";
import type { TestRun } from "./test-run.ts";
import { testWorkflow } from "./test-workflow.ts";

const modes = [{ replayEveryStep: false }, { replayEveryStep: true }];
const policy = {
  baseMs: 60_000,
  factor: 1,
  capMs: 60_000,
  steps: 10,
  jitter: { kind: "none" },
} as const;
const slow = { attempts: 10, policy };

/** Steps with an undo; the returned lists have those that ran and those that were undone. */
function recorder() {
  const done: string[] = [];
  const undone: string[] = [];
  const step = async (w: WorkflowContext, name: string, body = () => undefined as unknown) =>
    await w.step(
      name,
      async () => {
        done.push(name);
        await body();
      },
      { retry: slow, undo: () => void undone.push(name) },
    );
  return { done, undone, step };
}

const faults: readonly [what: string, inject: (t: TestRun, undo: string) => void][] = [
  ["no fault", () => undefined],
  ["a crash in the first undo", (t, undo) => t.crashIn(undo)],
  ["a crash after the first undo", (t, undo) => t.crashAfter(undo)],
  [
    "a first undo that fails 4 times",
    (t, undo) => t.failStep(undo, new Error("busy"), { times: 4 }),
  ],
];

test.each(faults)("undoes all branches of a race after %s", async (_, inject) => {
  const { done, undone, step } = recorder();
  const rollout = defineWorkflow("rollout", { version: 1 }, async (w) => {
    const roll = async () => {
      for (let at = 0; at < 40; at += 1) await step(w, `cluster ${at}`);
      await w.sleep("soak", "1h");
    };
    const abort = async () => {
      await w.signal("abort");
      throw new TerminalError("aborted");
    };
    await Promise.race([roll(), abort()]);
  });
  const t = testWorkflow(rollout, undefined as never);
  await t.settle();
  inject(t, "undo:cluster 39");
  await t.signal("abort");
  expect(await t.advance("10m")).toMatchObject({ status: "failed" });
  expect([...new Set(undone)]).toEqual(done.toReversed());
});

test.each(faults)(
  "undoes branches that are longer than the one that failed, after %s",
  async (_, inject) => {
    const { done, undone, step } = recorder();
    const program = defineWorkflow("clusters", { version: 1 }, async (w) => {
      const cluster = async (name: string, length: number) => {
        for (let at = 0; at < length; at += 1) await step(w, `${name} ${at}`);
      };
      const check = async () => {
        await w.signal("health");
        await w.step("check", async () => {
          throw new TerminalError("unhealthy");
        });
      };
      await Promise.all([cluster("big", 30), cluster("mid", 15), check()]);
    });
    const t = testWorkflow(program, undefined as never);
    await t.settle();
    inject(t, "undo:big 29");
    await t.signal("health");
    expect(await t.advance("10m")).toMatchObject({ status: "failed" });
    expect(done).toHaveLength(45);
    expect([...new Set(undone)].toSorted()).toEqual(done.toSorted());
    expect((await t.steps()).get("big 0")).toMatchObject({ hasUndo: true });
    expect((await t.steps()).get("check")).not.toHaveProperty("hasUndo");
  },
);

test.each(modes)(
  "undoes a step between two tries when another branch fails, with %o",
  async (mode) => {
    const { done, undone, step } = recorder();
    const program = defineWorkflow("between", { version: 1 }, async (w) => {
      const fail = async () => {
        await w.signal("go");
        throw new TerminalError("a fails");
      };
      const create = step(w, "create vm", () => {
        throw new Error("response lost");
      });
      await Promise.all([fail(), create]);
    });
    const t = testWorkflow(program, undefined as never, mode);
    expect((await t.settle()).waits).toMatchObject([{ step: "go" }, { step: "create vm" }]);
    expect(await t.signal("go")).toMatchObject({ status: "failed", error: { message: "a fails" } });
    expect([done, undone]).toEqual([["create vm"], ["create vm"]]);
    const record = { error: { code: "outcome_unknown" }, attempts: 1, hasUndo: true };
    expect((await t.steps()).get("create vm")).toMatchObject(record);
  },
);

test("undoes a step whose worker died when the replay fails before it begins again", async () => {
  const { done, undone, step } = recorder();
  const program = defineWorkflow("died", { version: 1 }, async (w) => {
    const fail = async () => {
      await w.step("check", async () => {
        throw new TerminalError("unhealthy");
      });
    };
    const create = async () => {
      await step(w, "create");
      await step(w, "never begun");
    };
    await Promise.all([fail(), create()]);
  });
  const t = testWorkflow(program, undefined as never);
  // The worker dies with the body of "create" at work, and the failure recorded.
  t.crashIn("create");
  expect(await t.settle()).toMatchObject({ status: "failed" });
  expect([done, undone]).toEqual([["create"], ["create"]]);
});

test("undoes a step whose record failed after the function had failed", async () => {
  const { done, undone, step } = recorder();
  const program = defineWorkflow("late", { version: 1 }, async (w) => {
    const failed = Promise.withResolvers<void>();
    const fail = async () => {
      try {
        await w.step("check", async () => {
          throw new TerminalError("unhealthy");
        });
      } finally {
        failed.resolve();
      }
    };
    await Promise.all([fail(), step(w, "create", async () => await failed.promise)]);
  });
  const t = testWorkflow(program, undefined as never);
  t.crashIn("create");
  expect(await t.settle()).toMatchObject({ status: "failed" });
  expect([done, undone]).toEqual([["create"], ["create"]]);
});

/** A run of old code that waits for `go`, continued by new code. */
async function deploy(
  before: (w: WorkflowContext) => Promise<unknown>,
  after: (w: WorkflowContext) => Promise<unknown>,
): Promise<{ readonly t: TestRun; readonly restore: () => void }> {
  let run = before;
  const program = defineWorkflow("deployed", { version: 1 }, async (w) => {
    await run(w);
    await w.signal("go");
    throw new TerminalError("fails");
  });
  const t = testWorkflow(program, undefined as never);
  await t.settle();
  run = after;
  return { t, restore: () => void (run = before) };
}

test("a step to undo that the code no longer has blocks the run until the code has it again", async () => {
  const { undone, step } = recorder();
  const { t, restore } = await deploy(
    async (w) => [await step(w, "create"), await step(w, "label")],
    async (w) => await step(w, "label"),
  );
  const blocked = await t.signal("go");
  expect(blocked).toMatchObject({ status: "blocked" });
  expect(blocked.blockedReason).toContain('must undo "create", which the code no longer does');
  expect(undone).toEqual([]);
  restore();
  expect(await t.advance("1m")).toMatchObject({ status: "failed", error: { message: "fails" } });
  expect(undone).toEqual(["label", "create"]);
});

test("a step whose undo was removed, or that is between two tries, blocks the run as well", async () => {
  const { step } = recorder();
  const removed = await deploy(
    async (w) => await step(w, "create"),
    async (w) => await w.step("create", async () => undefined),
  );
  expect((await removed.t.signal("go")).blockedReason).toContain('"create"');

  const lost = () => {
    throw new Error("response lost");
  };
  const between = await deploy(
    async (w) => await Promise.race([step(w, "create", lost), w.sleep("on", 0)]),
    async (w) => await w.sleep("on", 0),
  );
  expect((await between.t.signal("go")).blockedReason).toContain('"create"');
});

test("new code may add an undo to a recorded step", async () => {
  const { undone, step } = recorder();
  const { t } = await deploy(
    async (w) => await w.step("create", async () => undefined),
    async (w) => await step(w, "create"),
  );
  expect(await t.signal("go")).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["create"]);
});

test("a cancelled run that awaits something else is undone completely", async () => {
  const undone: string[] = [];
  const undo = (name: string) => ({ undo: () => void undone.push(name) });
  const awaiting = defineWorkflow("awaiting", { version: 1, stallTimeout: "6s" }, async (w) => {
    await w.step("first", async () => 1, undo("first"));
    // Longer than a run that is to end awaits a function without further undos.
    await new Promise((resolve) => setTimeout(resolve, 900));
    await w.step("second", async () => 2, undo("second"));
    await w.signal("never");
  });
  const t = testWorkflow(awaiting, undefined);
  await t.settle();
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  expect(undone).toEqual(["second", "first"]);
});
