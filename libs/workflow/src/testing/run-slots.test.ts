import { TerminalError, type Duration } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, type WorkflowContext } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const job = defineWorkflow(
  "job",
  { version: 1, concurrency: { runs: 2, key: (name: string) => name.slice(0, 1) } },
  async (w, name: string) => {
    const text = await w.step(`begin ${name}`, () => name);
    await w.signal("go");
    return text;
  },
);
const all = defineWorkflow("all", { version: 1 }, async (w, names: readonly string[]) => {
  await Promise.all(names.map((name) => w.child(name, job, name)));
});

test("children wait for slots in the order of their starts, per key", async () => {
  const names = ["a1", "a2", "a3", "a4", "b1"];
  const t = testWorkflow(all, names, { children: [job] });
  await t.settle();
  // All start at the same time, so any two of them may be the first.
  expect(t.bodies).toHaveLength(3);
  expect(t.bodies).toContain("begin b1");
  const [next = "", last = ""] = names.filter((name) => !t.bodies.includes(`begin ${name}`));
  const [first = ""] = names.filter((name) => t.bodies.includes(`begin ${name}`));
  expect(await t.child(next).run()).toMatchObject({ slotWait: { group: "a", ahead: 0 } });
  const waiting = await t.child(last).run();
  expect(waiting).toMatchObject({ status: "queued", slotWait: { group: "a", ahead: 1 } });
  expect(waiting.startedAtMs).toBeUndefined();
  await t.child("b1").signal("go");
  expect(t.bodies).toHaveLength(3);
  await t.child(first).signal("go");
  expect(t.bodies.slice(3)).toEqual([`begin ${next}`]);
  await t.child(last).cancel();
  expect((await t.run()).status).toBe("failed");
  expect(t.bodies).toHaveLength(4);
});

test("a run of the same workflow below a run has no slot of its own, so that neither waits for the other", async () => {
  const tree = defineWorkflow(
    "tree",
    { version: 1, concurrency: { runs: 1 } },
    async (w, depth: number): Promise<number> => {
      if (depth === 0) return 0;
      return (await w.child("below", middle, depth)) + 1;
    },
  );
  const middle = defineWorkflow(
    "middle",
    { version: 1, concurrency: { runs: 1 } },
    async (w: WorkflowContext, depth: number): Promise<number> =>
      await w.child("leaf", tree, depth - 1),
  );
  const t = testWorkflow(tree, 3, { children: [middle] });
  expect(await t.settle()).toMatchObject({ status: "done", result: 3 });
});

test("a child that outlives its parent keeps the slot, and one with another key needs its own", async () => {
  const begun: string[] = [];
  const tree = defineWorkflow(
    "tree",
    { version: 1, concurrency: { runs: 1, key: (name: string) => name.slice(0, 1) } },
    async (w, name: string): Promise<void> => {
      begun.push(name);
      if (name === "a parent") {
        const options = { onParentClose: "abandon" } as const;
        void w.child("same", tree, "a child", options).catch(() => undefined);
        void w.child("other", tree, "b child", options).catch(() => undefined);
      }
      await w.sleep("work", name === "a child" ? "10m" : "2m");
    },
  );
  const root = defineWorkflow("root", { version: 1 }, async (w) => {
    const first = [w.child("b", tree, "b"), w.child("parent", tree, "a parent")];
    await w.sleep("later", "1m");
    await Promise.all([...first, w.child("next", tree, "a next")]);
  });
  const t = testWorkflow(root, undefined, { children: [tree] });
  const seen = async (pass: Duration) => {
    await t.advance(pass);
    return [...new Set(begun)].toSorted();
  };
  expect(await seen("90s")).toEqual(["a child", "a parent", "b"]);
  // The parent and the run with the other key have ended.
  expect(await seen("60s")).toEqual(["a child", "a parent", "b", "b child"]);
  expect(await t.child("next").run()).toMatchObject({ slotWait: { group: "a" } });
  expect(await seen("10m")).toContain("a next");
});

test("a run keeps its slot in further rounds", async () => {
  const poll = defineWorkflow(
    "poll",
    { version: 1, concurrency: { runs: 1 } },
    async (w, round: number) => {
      await w.step(`round ${round} of ${w.runId}`, () => null);
      if (round === 3) return;
      await w.sleep("pause", "1m");
      await w.continueWith(round + 1);
    },
  );
  const two = defineWorkflow("two", { version: 1 }, async (w) => {
    await Promise.all([w.child("a", poll, 1), w.child("b", poll, 1)]);
  });
  const t = testWorkflow(two, undefined, { children: [poll] });
  expect(await t.advance("10m")).toMatchObject({ status: "done" });
  const ids = t.bodies.map((body) => body.slice("round 1 of ".length));
  expect(t.bodies).toHaveLength(6);
  expect(new Set(ids.slice(0, 3)).size).toBe(1);
  expect(new Set(ids.slice(3)).size).toBe(1);
});

test("a spread step and its undo need no slot of their own", async () => {
  const undone: string[] = [];
  const encode = defineWorkflow(
    "encode",
    { version: 1, concurrency: { runs: 1 } },
    async (w, fails: boolean) => {
      const part = await w.step("part", () => 7, {
        spread: true,
        undo: () => void undone.push("part"),
      });
      if (fails) await w.step("check", () => Promise.reject(new TerminalError("no")));
      return part;
    },
  );
  expect(await testWorkflow(encode, false).settle()).toMatchObject({ status: "done", result: 7 });
  expect(await testWorkflow(encode, true).settle()).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["part"]);
});

test("a run that has failed frees its slot", async () => {
  const deploy = defineWorkflow(
    "deploy",
    { version: 1, concurrency: { runs: 1 } },
    async (w, _input: null) => {
      await w.step("create", () => 1, { undo: () => undefined });
      await w.step("check", () => 2, { retry: { attempts: 1 } });
      await w.signal("go");
    },
  );
  const t = testWorkflow(deploy, null, { key: "k" });
  t.failStep("check", new Error("no"), { times: 1 });
  expect(await t.settle()).toMatchObject({ status: "failed" });
  const other = await t.startOther(null);
  expect(await other.run()).toMatchObject({ status: "waiting" });
});

test.each([
  { key: () => 7 as unknown as string, reason: /concurrency\.key must return a text .*\(got 7\)/ },
  { key: () => "x".repeat(201), reason: /at most 200 characters \(got 201 characters\)/ },
  {
    key: () => {
      throw new TypeError("no tenant");
    },
    reason: /concurrency\.key threw TypeError: no tenant; deploy corrected code/,
  },
])("a run whose key is invalid is blocked: $reason", async ({ key, reason }) => {
  const bad = defineWorkflow("bad", { version: 1, concurrency: { runs: 1, key } }, async () => 1);
  const t = testWorkflow(bad, null);
  expect(await t.settle()).toMatchObject({
    status: "blocked",
    blockedReason: expect.stringMatching(reason),
  });
  t.deploy(defineWorkflow("bad", { version: 1, concurrency: { runs: 1 } }, async () => 1));
  expect(await t.advance("1m")).toMatchObject({ status: "done" });
});

test("an input that the schema rejects fails the run without a slot", async () => {
  const input = {
    parse(): string {
      throw new Error("no name");
    },
  };
  const named = defineWorkflow(
    "named",
    { version: 1, input, concurrency: { runs: 1, key: (name) => name } },
    async () => 1,
  );
  expect(await testWorkflow(named, "x").settle()).toMatchObject({ status: "failed" });
});

test.each([
  { concurrency: 5, text: /concurrency must be \{ runs, key, label \}.*\(got 5\)/ },
  { concurrency: { runs: 0 }, text: /runs must be an integer from 1 to 1000000 \(got 0\)/ },
  { concurrency: { runs: 1, key: "tenant" }, text: /key must be a function of the input/ },
  { concurrency: { runs: 1, key: () => "", label: "a" }, text: /label cannot be combined/ },
  { concurrency: { runs: 1, label: 7 }, text: /label must be the name of a label \(got 7\)/ },
  { concurrency: { max: 1 }, text: /concurrency\.max is unknown; valid options: runs, key, label/ },
])("rejects $concurrency", ({ concurrency, text }) => {
  const options = { version: 1, concurrency: concurrency as never };
  expect(() => defineWorkflow("x", options, async () => 1)).toThrow(text);
});
