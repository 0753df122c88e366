import { expect, test } from "vitest";
import { createConnectionSlots } from "./connection-slots.ts";

test("a free slot is taken without waiting, the rest wait in order", async () => {
  const slots = createConnectionSlots(1);
  const order: string[] = [];
  expect(slots.take()).toBeUndefined();
  const waiting = ["a", "b"].map(async (name) => {
    await slots.take();
    order.push(name);
  });
  slots.give();
  slots.give();
  await Promise.all(waiting);
  expect(order).toEqual(["a", "b"]);
});
test("whoever is aborted in line leaves its place to the next", async () => {
  const slots = createConnectionSlots(1);
  void slots.take();
  const abort = new AbortController();
  const left = slots.take(abort.signal);
  const next = slots.take();
  abort.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  slots.give();
  await next;
  slots.give();
  expect(slots.take()).toBeUndefined();
});
test("an aborted signal takes nothing", () => {
  const slots = createConnectionSlots(1);
  expect(() => slots.take(AbortSignal.abort(new Error("before")))).toThrow("before");
  expect(slots.take()).toBeUndefined();
});
