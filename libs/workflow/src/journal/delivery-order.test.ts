import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StepRecord } from "../store/run-record.ts";
import { DeliveryOrder } from "./delivery-order.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout"] }));
afterEach(() => void vi.useRealTimers());

const record = (seq: number): StepRecord => ({ kind: "step", seq });
const journal = (...keys: string[]) => new Map(keys.map((key, at) => [key, record(at + 1)]));
/** Lets all queued microtasks and turns of the order run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

function open(order: DeliveryOrder) {
  const seen: string[] = [];
  return {
    seen,
    turn: (key: string, seq: number) => void order.turn(key, seq).then(() => seen.push(key)),
    rest: (name: string) => void order.rest().then(() => seen.push(name)),
  };
}

test("delivers in the order of the records, whatever the order of the calls, then starts new work", async () => {
  const order = new DeliveryOrder(journal("a", "b", "c"));
  const { seen, turn, rest } = open(order);
  rest("new");
  turn("c", 3);
  turn("a", 1);
  turn("b", 2);
  await settle();
  expect(seen).toEqual(["a", "b", "c", "new"]);
  expect(order.isBusy).toBe(false);
  expect(order.misfit()).toBeUndefined();
});

test("lets the function compute between two records", async () => {
  const order = new DeliveryOrder(journal("a", "b", "c"));
  const seen: string[] = [];
  const first = async () => {
    await order.turn("a", 1);
    for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
    seen.push("after a");
    await order.turn("b", 2);
    seen.push("after b");
  };
  const second = async () => {
    await order.turn("c", 3);
    seen.push("after c");
  };
  await Promise.all([second(), first()]);
  expect(seen).toEqual(["after a", "after b", "after c"]);
});

test("waits for a commit whose record may come before a known one", async () => {
  const order = new DeliveryOrder(new Map());
  const { seen, turn } = open(order);
  const slow = Promise.withResolvers<StepRecord>();
  const first = order.commit(() => slow.promise).then(({ seq = 0 }) => turn("first", seq));
  const { seq = 0 } = await order.commit(async () => record(2));
  turn("second", seq);
  await settle();
  expect(seen).toEqual([]);
  slow.resolve(record(1));
  await first;
  await settle();
  expect(seen).toEqual(["first", "second"]);
});

test("waits for a recorded verb that the function calls late, once and not for ever", async () => {
  const order = new DeliveryOrder(journal("a", "b", "c"));
  const { seen, turn } = open(order);
  turn("b", 2);
  await settle();
  expect(seen).toEqual([]);
  turn("a", 1);
  await settle();
  expect(seen).toEqual(["a", "b"]);
  expect(order.misfit()).toEqual({ missing: ["c"] });

  const changed = new DeliveryOrder(journal("gone", "a", "b", "c"));
  const late = open(changed);
  late.turn("b", 3);
  late.rest("new");
  await settle();
  vi.advanceTimersByTime(1_000);
  await settle();
  expect(late.seen).toEqual(["b", "new"]);
  expect(changed.misfit()).toEqual({ missing: ["gone", "a", "c"], early: "b" });
});

test("a blocked event loop does not end the wait for a verb behind other work", async () => {
  vi.useRealTimers();
  const order = new DeliveryOrder(journal("a", "b"));
  const { seen, turn } = open(order);
  const later = settle()
    .then(settle)
    .then(() => turn("a", 1));
  turn("b", 2);
  await Promise.resolve();
  // Starts the wait.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  const endMs = performance.now() + 200;
  while (performance.now() < endMs);
  await later;
  await vi.waitFor(() => expect(seen).toHaveLength(2));
  expect(seen).toEqual(["a", "b"]);
  expect(order.misfit()).toBeUndefined();
});
