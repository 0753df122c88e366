import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RunView } from "../store/run-record.ts";
import { RunOutput } from "./run-output.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open(published?: RunView["published"]) {
  const alone: string[] = [];
  let fails = false;
  const run = (published === undefined ? {} : { published }) as RunView;
  const output = new RunOutput({
    held: { run },
    storeLabels: async (labels) => void alone.push(JSON.stringify(labels)),
    store: async ({ published: text }) => {
      if (fails) throw new Error("no connection");
      alone.push(text);
    },
  });
  return { output, alone, fail: (does: boolean) => void (fails = does) };
}

test("gives what was published since the last record, once", async () => {
  const { output, alone } = open();
  expect(output.take()).toBeUndefined();
  output.publish("a", 1);
  output.publish("a", 2);
  expect(output.take()).toEqual({ published: '{"a":2}' });
  expect(output.take()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(alone).toEqual([]);
});

test("a replay that publishes the stored values again stores nothing", async () => {
  const { output, alone } = open({ a: 3 });
  for (const value of [1, 2, 3]) output.publish("a", value);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([output.take(), alone]).toEqual([undefined, []]);
});

test("stores a value alone after a second without a record, and again after a failure", async () => {
  const { output, alone, fail } = open();
  output.publish("a", 1);
  await vi.advanceTimersByTimeAsync(999);
  expect(alone).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(alone).toEqual(['{"a":1}']);
  fail(true);
  output.publish("a", 2);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(output.take()).toEqual({ published: '{"a":2}' });
});

test("stores nothing alone after the end of the execution", async () => {
  const { output, alone } = open();
  output.publish("a", 1);
  output.close();
  output.publish("b", 1);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(alone).toEqual([]);
});
