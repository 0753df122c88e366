import { expect, test } from "vitest";
import { z } from "zod";
import { noChildren } from "../../../../test/support/no-children.ts";
import { defineWorkflow, type AnyWorkflow } from "../define/define-workflow.ts";
import { createMemoryRunStore } from "../testing/memory-run-store.ts";
import { runExecution } from "./run-execution.ts";

const ref = { workflow: "w", id: "r" };
const schema = z.number();
const MOST_PAUSES = 200;

/** One execution of a run that has received `wrong` signals that it refuses. `onPause` receives the number of the pause. */
async function flood(
  run: AnyWorkflow["run"],
  onPause: (
    pause: number,
    act: { readonly send: Send; readonly stop: () => void },
  ) => Promise<void>,
  { wrong = 11, onRaced = () => undefined }: { wrong?: number; onRaced?: () => void } = {},
) {
  let nowMs = 1;
  let sent = 0;
  let pauses = 0;
  const store = createMemoryRunStore({ now: () => nowMs });
  const stopped = new AbortController();
  const send: Send = async (payload, name = "number") => {
    await store.signal(ref, { name, id: String((sent += 1)), payload });
  };
  await store.start({ ...ref, version: 1, input: null });
  for (let n = 0; n < wrong; n += 1) await send("wrong");
  const held = await store.claim(ref, { lease: 1, owner: "worker" });
  if (held.kind !== "held") throw new Error(`claim: ${held.kind}`);
  const end = await runExecution({
    store: {
      ...store,
      async commit(by, step, record, how) {
        const stored = await store.commit(by, step, record, how);
        if (record.kind === "race") onRaced();
        return stored;
      },
    },
    workflow: defineWorkflow("w", { version: 1 }, run as never),
    held,
    startChild: noChildren,
    stopped: stopped.signal,
    clock: () => nowMs,
    random: () => 0,
    async pause(ms) {
      nowMs += ms;
      if ((pauses += 1) > MOST_PAUSES) throw new Error("the execution does not end");
      await onPause(pauses, { send, stop: () => stopped.abort(new Error("the worker stops")) });
    },
  });
  const { count } = await store.refusedSignals(ref);
  return { end, count, pauses, unconsumed: await store.unconsumedSignals(ref) };
}

type Send = (payload: unknown, name?: string) => Promise<void>;

test("one execution collects and refuses the signals of a flood", async () => {
  const { end, count } = await flood(
    async (w) => await w.signal("number", { schema }),
    async (pause, { send }) => {
      for (let n = 0; n < 5; n += 1) await send("wrong");
      if (pause === 100) await send(7);
    },
  );
  expect(end).toMatchObject({ kind: "ended", status: "done" });
  expect(count).toBe(511);
});

test("a run that has refused a few signals waits at once", async () => {
  const { end, pauses, count } = await flood(
    async (w) => await w.signal("number", { schema }),
    async () => undefined,
    { wrong: 10 },
  );
  expect([end.kind, pauses, count]).toEqual(["waiting", 0, 10]);
});

test("a run that receives no more wrong signals waits", async () => {
  const { end, pauses } = await flood(
    async (w) => await w.signal("number", { schema }),
    async () => undefined,
  );
  expect(end).toMatchObject({ kind: "waiting" });
  expect(pauses).toBe(1);
});

test("a flood does not postpone the timeout of the wait", async () => {
  const { end, pauses } = await flood(
    async (w) => await w.signal("number", { schema, timeout: "1s" }),
    async (_, { send }) => await send("wrong"),
  );
  expect(end).toMatchObject({ kind: "ended", status: "done" });
  expect(pauses).toBe(20);
});

test("a flood does not keep an execution whose worker stops", async () => {
  const { end, pauses } = await flood(
    async (w) => await w.signal("number", { schema }),
    async (pause, { send, stop }) => {
      await send("wrong");
      if (pause === 3) stop();
    },
  );
  expect([end.kind, pauses]).toEqual(["lost", 3]);
});

test("a branch that has lost its race takes no signal after the flood", async () => {
  const raced = Promise.withResolvers<void>();
  const { end, unconsumed } = await flood(
    async (w) =>
      await w.race({
        number: async () => await w.signal("number", { schema }),
        end: async () => await w.step("end", async () => "end"),
      }),
    async (_, { send }) => {
      await raced.promise;
      await send(1);
    },
    { onRaced: raced.resolve },
  );
  expect(end).toMatchObject({ kind: "ended", status: "done" });
  expect(unconsumed).toMatchObject([{ name: "number" }]);
});
