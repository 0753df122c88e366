import { expect, test, vi } from "vitest";
import { noChildren } from "../../../../test/support/no-children.ts";
import { defineWorkflow } from "../define/define-workflow.ts";
import { createMemoryRunStore } from "../testing/memory-run-store.ts";
import { runExecution } from "./run-execution.ts";

/** Holds a call until it is released. */
function gate() {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const pass = async () => {
    reached.resolve();
    await opened.promise;
  };
  return { pass, reached: reached.promise, open: () => opened.resolve() };
}

test(
  "a signal reaches a branch that begins to wait while the events of other branches are read",
  { timeout: 60_000 },
  async () => {
    const ref = { workflow: "w", id: "r" };
    const [body, noting, reading] = [gate(), gate(), gate()];
    const workflow = defineWorkflow("w", { version: 1 }, async (w) => {
      const [, , answer] = await Promise.all([
        w.step("copy", body.pass),
        w.signal("first"),
        w.signal("hello", { timeout: "1h" }),
      ]);
      return answer;
    });
    const store = createMemoryRunStore({ now: () => 1 });
    await store.start({ ...ref, version: 1, input: null });
    const held = await store.claim(ref, { lease: 1, owner: "worker" });
    if (held.kind !== "held") throw new Error(`claim: ${held.kind}`);
    let wake: () => void = () => undefined;
    const reads: (readonly string[])[] = [];
    const end = runExecution({
      store: {
        ...store,
        async note(run, step, progress) {
          if (step === "hello") await noting.pass();
          return await store.note(run, step, progress);
        },
        async news(run, awaited) {
          reads.push(awaited.signals);
          const news = await store.news(run, awaited);
          await reading.pass();
          return news;
        },
      },
      workflow,
      held,
      startChild: noChildren,
      stopped: new AbortController().signal,
      wakeUps: {
        start: (onWake) => void (wake = onWake),
        stop: () => void (wake = () => undefined),
      },
      clock: () => 1,
      random: () => 0,
    });
    await Promise.all([body.reached, noting.reached]);
    await store.signal(ref, { name: "hello", id: "1", payload: "hi" });
    wake();
    await reading.reached;
    noting.open();
    await new Promise(setImmediate);
    reading.open();
    const hello = async () => (await store.steps(ref)).get("hello");
    const isTaken = async () => expect(await hello()).toMatchObject({ value: "hi" });
    await vi.waitFor(isTaken, { timeout: 30_000 });
    expect(reads).toEqual([["first"], ["first", "hello"]]);
    await store.signal(ref, { name: "first", id: "2", payload: null });
    wake();
    body.open();
    expect(await end).toMatchObject({ kind: "ended", status: "done" });
  },
);
