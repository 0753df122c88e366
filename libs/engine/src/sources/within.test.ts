import { sleepMs } from "@konverge/core";
import { expect, onTestFinished, test } from "vitest";
import { within } from "./within.ts";

const limit = (rest: Partial<Parameters<typeof within>[1]> = {}) => ({
  signal: new AbortController().signal,
  timeoutMs: Infinity,
  what: "list",
  ...rest,
});

test("returns the value or the error of the call", async () => {
  await expect(within(Promise.resolve(1), limit())).resolves.toBe(1);
  await expect(within(2, limit())).resolves.toBe(2);
  await expect(within(Promise.reject(new Error("no")), limit())).rejects.toThrow("no");
});

test("ends with the timeout and with the signal", async () => {
  const never = new Promise<never>(() => undefined);
  await expect(within(never, limit({ timeoutMs: 1 }))).rejects.toThrow("list took more than 1 ms");
  const ending = new AbortController();
  const waiting = within(never, limit({ signal: ending.signal }));
  ending.abort(new Error("over"));
  await expect(waiting).rejects.toThrow("over");
});

test("an error of the call after the end is not an unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  for (const signal of [AbortSignal.abort(), AbortSignal.timeout(1)]) {
    const late = async () => {
      await sleepMs(5);
      throw new Error("late");
    };
    await expect(within(late(), limit({ signal }))).rejects.toBeDefined();
  }
  await sleepMs(20);
  expect(unhandled).toEqual([]);
});
