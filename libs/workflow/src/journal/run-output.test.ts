import { sleepMs, type RunLabels } from "@konverge/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RunOutputText } from "../store/run-journal-store.ts";
import type { RunView } from "../store/run-record.ts";
import { seededRandom } from "../../../../apps/demo/src/load/seeded-random.ts";
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

const take = (output: RunOutput) => output.storeWith(async (taken) => taken);

test("gives what was published since the last record, once", async () => {
  const { output, alone } = open();
  expect(await take(output)).toBeUndefined();
  output.publish("a", 1);
  output.publish("a", 2);
  expect(await take(output)).toEqual({ published: '{"a":2}' });
  expect(await take(output)).toBeUndefined();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(alone).toEqual([]);
});

test("a replay that publishes the stored values again stores nothing", async () => {
  const { output, alone } = open({ a: 3 });
  for (const value of [1, 2, 3]) output.publish("a", value);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await take(output), alone]).toEqual([undefined, []]);
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
  expect(await take(output)).toEqual({ published: '{"a":2}' });
});

test("stores nothing alone after the end of the execution", async () => {
  const { output, alone } = open();
  output.publish("a", 1);
  output.close();
  output.publish("b", 1);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(alone).toEqual([]);
});

test("the last values and labels are in the store at the end, however long each store takes", async () => {
  const random = seededRandom(7);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 300; round += 1) {
    const stored = { published: "{}", labels: {} as RunLabels };
    let hasEnded = false;
    const change = async (what: Partial<typeof stored>) => {
      await sleepMs(below(2_500));
      // As in Redis, where the end of the run fences later stores.
      if (!hasEnded) Object.assign(stored, what);
    };
    const output = new RunOutput({
      held: { run: {} as RunView },
      store: ({ published }) => change({ published }),
      storeLabels: (labels) => change({ labels: { ...labels } }),
    });
    const record = async (isLast: boolean) => {
      const store = async (taken: RunOutputText | undefined) => {
        await change(taken ?? {});
        hasEnded = isLast;
      };
      await (isLast ? output.storeLast(store) : output.storeWith(store));
    };
    const last = below(20);
    const branches: Promise<void>[] = [];
    const run = (async () => {
      for (let value = 0; value <= last; value += 1) {
        output.publish("value", value);
        if (random() < 0.3) output.label("label", String(value));
        if (random() < 0.2) output.label("label", `last-${last}`);
        if (random() < 0.8) await sleepMs(below(3_000));
        // Another branch may publish meanwhile.
        if (random() < 0.3) branches.push(record(false));
      }
      output.label("label", "end");
      if (random() < 0.5) await sleepMs(1_000 + below(2_000));
      await Promise.all(branches);
      await record(true);
      output.close();
    })();
    await vi.advanceTimersByTimeAsync(200_000);
    await run;
    const expected = { published: JSON.stringify({ value: last }), labels: { label: "end" } };
    expect(stored, `round ${round}`).toEqual(expected);
  }
});
