import { expect, test } from "vitest";
import { defineWorkflow, type WorkflowContext } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const modes = [{ replayEveryStep: false }, { replayEveryStep: true }];

test.each(modes)(
  "an approval before the deadline wins in every execution, with %o",
  async (mode) => {
    const log: string[] = [];
    const approval = defineWorkflow("approval", { version: 1 }, async (w) => {
      const winner = await Promise.race([
        w.sleep("deadline", "24h").then(() => "late" as const),
        w.signal("approve").then(() => "approved" as const),
      ]);
      if (winner === "late") throw new Error("nobody approved");
      await w.step("deploy", async () => void log.push("deploy"), {
        undo: () => void log.push("undo"),
      });
      await w.sleep("soak", "48h");
      await w.step("finish", async () => void log.push("finish"));
    });
    const t = testWorkflow(approval, undefined as never, mode);
    await t.settle();
    await t.signal("approve");
    expect(await t.advance("72h")).toMatchObject({ status: "done" });
    expect(log).toEqual(["deploy", "finish"]);
    expect((await t.steps()).get("deadline")).toMatchObject({ atMs: 86_400_000 });
    await t.replay();
  },
);

test.each(modes)(
  "a signal that comes after the winner loses in every execution, with %o",
  async (mode) => {
    const log: string[] = [];
    const decision = defineWorkflow("decision", { version: 1 }, async (w) => {
      const answer = await Promise.race([
        w.signal("reject").then(() => "rejected"),
        w.signal("approve").then(() => "approved"),
      ]);
      await w.step(answer, async () => void log.push(answer));
      await w.sleep("soak", "1h");
      return answer;
    });
    const t = testWorkflow(decision, undefined as never, mode);
    await t.settle();
    await t.signal("approve");
    await t.signal("reject");
    expect(await t.advance("2h")).toMatchObject({ status: "done", result: "approved" });
    expect(log).toEqual(["approved"]);
    await t.replay();
  },
);

/** Steps whose bodies end in another order than they begin in. */
const steps = (w: WorkflowContext, ends: readonly string[]) => {
  const after = new Map<string, PromiseWithResolvers<void>>(
    ends.map((name) => [name, Promise.withResolvers<void>()]),
  );
  after.get(ends[0] ?? "")?.resolve();
  return ends.toSorted().map((name) =>
    w.step(
      name,
      async () => {
        await after.get(name)?.promise;
        setTimeout(() => after.get(ends[ends.indexOf(name) + 1] ?? "")?.resolve(), 1);
        if (name === "b") throw new Error("b fails");
        return name;
      },
      { retry: { attempts: 1 } },
    ),
  );
};

test.each(modes)("combinators give the first answer again, with %o", async (mode) => {
  const seen = new Set<string>();
  const program = defineWorkflow("combinators", { version: 1 }, async (w) => {
    const order: string[] = [];
    const all = steps(w, ["c", "d", "b", "a"]).map(async (step, at) => {
      const name = "abcd".charAt(at);
      try {
        return await step;
      } finally {
        order.push(name);
      }
    });
    const race = await Promise.race(all);
    const any = await Promise.any([all[0], all[1]]);
    const settled = await Promise.allSettled(all);
    const ends = settled.map(({ status }) => status).join();
    seen.add([race, any, ends, ...order].join(" "));
    await w.sleep("soak", "1h");
    seen.add([race, any, ends, ...order].join(" "));
  });
  const t = testWorkflow(program, undefined as never, mode);
  await t.settle();
  expect(await t.advance("1h")).toMatchObject({ status: "done" });
  await t.replay();
  const ends = "fulfilled,rejected,fulfilled,fulfilled";
  expect([...seen]).toEqual([`c a ${ends} c d b a`]);
});

test("a cancelled sleep ends with the cancellation", async () => {
  const program = defineWorkflow("cancelled", { version: 1 }, async (w) => {
    await w.sleep("soak", "1h");
  });
  const t = testWorkflow(program, undefined as never);
  await t.advance("10m");
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  const soak = { kind: "sleep", error: { code: "cancelled" }, startedAtMs: 0, atMs: 600_000 };
  expect((await t.steps()).get("soak")).toMatchObject(soak);
});
