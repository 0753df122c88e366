import { TerminalError, type Duration } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, type StepContext } from "../define/define-workflow.ts";
import { scrambleCodec } from "../../../../test/support/scramble-codec.ts";
import { noChildren } from "../../../../test/support/no-children.ts";
import { runExecution } from "../execution/run-execution.ts";
import { CancelRequests } from "../journal/cancel-requests.ts";
import { createMemoryRunStore } from "./memory-run-store.ts";
import { testWorkflow } from "./test-workflow.ts";

/** Copies rows, and reports the position after each. */
function copyOf(rows: number, options: { attempts?: number; heartbeatTimeout?: Duration } = {}) {
  const { attempts = 5, heartbeatTimeout = "30s" } = options;
  const copied: number[] = [];
  const workflow = defineWorkflow("copy", { version: 1 }, async (w) => {
    return await w.step(
      "copy",
      async (ctx) => {
        const from = (ctx.lastHeartbeat as { row: number } | undefined)?.row ?? 0;
        for (let row = from + 1; row <= rows; row += 1) {
          await Promise.resolve();
          copied.push(row);
          ctx.heartbeat({ row });
        }
        return `from ${from}, attempt ${ctx.attempt}`;
      },
      { heartbeatTimeout, retry: { attempts } },
    );
  });
  return { workflow, copied };
}

test("the next attempt continues after the last heartbeat of a lost worker", async () => {
  const { workflow, copied } = copyOf(5);
  const t = testWorkflow(workflow, null);
  t.crashAtHeartbeat("copy", 3);
  const run = await t.settle();
  expect(run).toMatchObject({ status: "done", result: "from 3, attempt 2" });
  expect(copied).toEqual([1, 2, 3, 4, 5]);
  expect(t.heartbeats.map(({ progress }) => progress)).toEqual(copied.map((row) => ({ row })));
  expect((await t.steps()).get("copy")).toMatchObject({ attempts: 2 });
});

test("the next attempt gets the last heartbeat of a failed attempt", async () => {
  const seen: unknown[] = [];
  const workflow = defineWorkflow("flaky", { version: 1 }, async (w) => {
    await w.step("s", (ctx) => {
      seen.push(ctx.lastHeartbeat);
      if (ctx.attempt === 1) ctx.heartbeat("half");
      // Without a value, the progress stays.
      ctx.heartbeat();
      if (ctx.attempt < 4) throw new Error("no");
    });
  });
  const t = testWorkflow(workflow, null);
  expect((await t.settle()).status).toBe("done");
  expect(seen).toEqual([undefined, "half", "half", "half"]);
});

test("a lost worker counts as a failed attempt of a step with a heartbeat timeout", async () => {
  const { workflow } = copyOf(5, { attempts: 2 });
  const t = testWorkflow(workflow, null);
  t.crashAtHeartbeat("copy", 2);
  const first = t.settle();
  await first;
  const failing = testWorkflow(copyOf(5, { attempts: 1 }).workflow, null);
  failing.crashAtHeartbeat("copy", 2);
  expect(await failing.settle()).toMatchObject({ status: "failed" });
  const { error } = (await failing.steps()).get("copy") ?? {};
  expect(error).toMatchObject({
    code: "heartbeat_timeout",
    message: expect.stringContaining('the worker of attempt 1 of step "copy" was lost') as string,
  });
  expect(await first).toMatchObject({ status: "done" });
});

test("a crash before the first heartbeat counts as well", async () => {
  const { workflow } = copyOf(1, { attempts: 1 });
  const t = testWorkflow(workflow, null);
  t.holdStep("copy");
  t.crashIn("copy");
  await t.settle();
  expect(await t.releaseStep("copy")).toMatchObject({ status: "failed" });
  expect((await t.steps()).get("copy")?.error?.code).toBe("heartbeat_timeout");
});

test("a silent body is aborted, and its step is retried", async () => {
  const reasons: unknown[] = [];
  const workflow = defineWorkflow("silent", { version: 1 }, async (w) => {
    return await w.step(
      "s",
      async ({ attempt, signal, heartbeat }) => {
        heartbeat({ attempt });
        if (attempt > 1) return "done";
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        reasons.push(signal.reason);
        return "too late";
      },
      { heartbeatTimeout: "1s" },
    );
  });
  const t = testWorkflow(workflow, null);
  expect(await t.settle()).toMatchObject({ status: "done", result: "done" });
  expect(reasons).toEqual([expect.objectContaining({ code: "heartbeat_timeout" })]);
});

test("the last heartbeat is kept while the step waits for its next attempt, and not after its record", async () => {
  const workflow = defineWorkflow("waiting", { version: 1 }, async (w) => {
    await w.step(
      "s",
      ({ attempt, heartbeat }) => {
        heartbeat("here");
        if (attempt === 1) throw new Error("no");
      },
      { retry: { delay: "1h" } },
    );
  });
  const t = testWorkflow(workflow, null, { startMs: 7_000 });
  await t.settle();
  const heartbeat = { progress: "here", attempt: 1, atMs: 7_000 };
  const { progress } = await t.history();
  expect(progress).toMatchObject([{ name: "s", attempts: 1, heartbeat }]);
  expect(progress[0]).not.toHaveProperty("running");
  await t.advance("1h");
  expect((await t.history()).progress).toEqual([]);
});

test.each([
  {
    what: "a value that is not JSON",
    value: 7n,
    message: 'the heartbeat of "s" cannot be recorded',
  },
  { what: "a value of 17 KiB", value: "x".repeat(17 * 1_024), message: "the limit is 16384" },
])("$what is rejected where it is reported", async ({ value, message }) => {
  const workflow = defineWorkflow("wrong", { version: 1 }, async (w) => {
    await w.step("s", ({ heartbeat }) => heartbeat(value));
  });
  const t = testWorkflow(workflow, null);
  const error = { code: "step_failed", message: expect.stringContaining(message) as string };
  expect(await t.settle()).toMatchObject({ status: "failed", error });
});

test.each<Duration>(["999ms", "0s"])(
  "a heartbeat timeout of %s is rejected",
  async (heartbeatTimeout) => {
    const { workflow } = copyOf(1, { heartbeatTimeout });
    const run = await testWorkflow(workflow, null).settle();
    expect(run).toMatchObject({ status: "blocked" });
    expect(run.blockedReason).toContain('heartbeatTimeout of step "copy" must be at least 1s');
  },
);

test("a fault of a test at a heartbeat that is never sent is reported", async () => {
  const { workflow } = copyOf(2);
  const t = testWorkflow(workflow, null);
  t.crashAtHeartbeat("copy", 3);
  await expect(t.settle()).rejects.toThrow('crashAtHeartbeat("copy")');
});

test("the undo of a step sends heartbeats too", async () => {
  const seen: unknown[] = [];
  const workflow = defineWorkflow("undone", { version: 1 }, async (w) => {
    await w.step("s", () => 1, {
      heartbeatTimeout: "30s",
      undo(_result, ctx) {
        seen.push(ctx.lastHeartbeat);
        ctx.heartbeat("undoing");
      },
    });
    throw new TerminalError("no");
  });
  const t = testWorkflow(workflow, null);
  t.crashAtHeartbeat("undo:s");
  await t.settle();
  expect(seen).toEqual([undefined, "undoing"]);
});

test("a heartbeat passes the codec", async () => {
  const seen: unknown[] = [];
  const workflow = defineWorkflow("coded", { version: 1 }, async (w) => {
    await w.step(
      "s",
      (ctx) => {
        seen.push(ctx.lastHeartbeat);
        ctx.heartbeat({ card: "4711" });
        if (ctx.attempt === 1) throw new Error("no");
      },
      { retry: { delay: "1h" } },
    );
  });
  const t = testWorkflow(workflow, null, { codec: scrambleCodec() });
  await t.settle();
  await t.advance("1h");
  expect(seen).toEqual([undefined, { card: "4711" }]);
});

test("a cancelled body whose end is awaited does not count as silent", async () => {
  const store = createMemoryRunStore({ now: () => nowMs });
  const cancels = new CancelRequests();
  const seen: unknown[] = [];
  let nowMs = 1;
  const workflow = defineWorkflow("stubborn", { version: 1 }, async (w) => {
    const body = async ({ heartbeat }: StepContext) => {
      heartbeat("here");
      cancels.note({ number: 1, request: {} });
      // The note follows the heartbeats that are being stored.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      nowMs += 60_000;
      seen.push((await store.silent("stubborn")).lost);
    };
    await w.step("copy", body, { heartbeatTimeout: "30s", undo: () => void seen.push("undone") });
  });
  const ref = { workflow: "stubborn", id: "s" };
  await store.start({ ...ref, version: 1, input: null });
  const held = await store.claim(ref, { lease: 1, owner: "1" });
  if (held.kind !== "held") throw new Error(held.kind);
  await store.cancel(ref, {});
  const end = await runExecution({
    store,
    workflow,
    held,
    cancels,
    startChild: noChildren,
    stopped: new AbortController().signal,
    clock: () => 0,
    random: () => 0,
  });
  expect(end).toMatchObject({ kind: "ended", status: "cancelled" });
  expect(seen).toEqual([[], "undone"]);
});
