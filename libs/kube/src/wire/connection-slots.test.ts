import { expect, test } from "vitest";
import { createConnectionSlots } from "./connection-slots.ts";

test("takes a free slot without waiting; the rest wait in order", async () => {
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
test("passes an aborted waiter's slot to the next waiter", async () => {
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
test("takes no slot for an aborted signal", () => {
  const slots = createConnectionSlots(1);
  expect(() => slots.take(AbortSignal.abort(new Error("before")))).toThrow("before");
  expect(slots.take()).toBeUndefined();
});
