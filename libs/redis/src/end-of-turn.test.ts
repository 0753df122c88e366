import { expect, test } from "vitest";
import { atEndOfTurn } from "./end-of-turn.ts";

test("runs the calls of one turn in order, with those that they add", async () => {
  const order: string[] = [];
  const { promise: over, resolve } = Promise.withResolvers<void>();
  atEndOfTurn(() => {
    order.push("first");
    atEndOfTurn(() => {
      order.push("added");
      resolve();
    });
  });
  atEndOfTurn(() => order.push("second"));
  await Promise.resolve();
  expect(order).toEqual([]);
  setImmediate(() => order.push("next turn"));
  await over;
  expect(order).toEqual(["first", "second", "added"]);
});
