import { expect, test } from "vitest";
import { shareCalls } from "./share-calls.ts";

class ReplyError extends Error {
  override readonly name = "ReplyError";
}

test("sends the calls of one turn together", async () => {
  const sent: number[][] = [];
  const call = shareCalls<number, number>(async (calls) => {
    sent.push([...calls]);
    return calls.map((n) => n * 10);
  });
  const later = Promise.resolve()
    .then(() => undefined)
    .then(() => call(2));
  expect(await Promise.all([call(1), later])).toEqual([10, 20]);
  expect(sent).toEqual([[1, 2]]);
});

test("repeats the calls one by one after an error that Redis returns, and rejects only those that fail", async () => {
  const sent: number[][] = [];
  const call = shareCalls<number, number>(async (calls) => {
    sent.push([...calls]);
    if (calls.includes(2)) throw new ReplyError("WRONGTYPE");
    return calls;
  });
  const settled = await Promise.allSettled([1, 2, 3].map((n) => call(n)));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(sent).toEqual([[1, 2, 3], [1], [2], [3]]);
});

test("repeats nothing after a lost connection", async () => {
  let sent = 0;
  const call = shareCalls<number, number>(async () => {
    sent += 1;
    throw new Error("Connection is closed.");
  });
  const settled = await Promise.allSettled([call(1), call(2)]);
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(sent).toBe(1);
});
