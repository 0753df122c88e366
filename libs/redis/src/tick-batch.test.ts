import { expect, test } from "vitest";
import { createTickBatch } from "./tick-batch.ts";

test("combines the calls of one turn, in order and up to the size limit", async () => {
  const sent: number[][] = [];
  const call = createTickBatch<number, number>(2, async (calls) => {
    sent.push([...calls]);
    return calls.map((n) => n * 10);
  });
  const answers = [1, 2, 3].map((n) => call(n).answer);
  expect(sent).toEqual([]);
  expect(await Promise.all(answers)).toEqual([10, 20, 30]);
  expect(await call(4).answer).toBe(40);
  expect(sent).toEqual([[1, 2], [3], [4]]);
});

test("resolves sent before answer", async () => {
  const gate = Promise.withResolvers<void>();
  const call = createTickBatch<number, number>(8, async (calls) => {
    await gate.promise;
    return calls;
  });
  const handed = call(1);
  await handed.sent;
  gate.resolve();
  expect(await handed.answer).toBe(1);
});

test("rejects all calls of a failed batch and no others", async () => {
  let fails = true;
  const call = createTickBatch<number, number>(8, async (calls) => {
    if (fails) throw new Error("away");
    return calls;
  });
  const settled = await Promise.allSettled([call(1).answer, call(2).answer]);
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  fails = false;
  expect(await call(3).answer).toBe(3);
});
