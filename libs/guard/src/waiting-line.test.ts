import { expect, test } from "vitest";
import { createWaitingLine, type Waiter } from "./waiting-line.ts";

const waiterOf = (call: Pick<Waiter["call"], "priority" | "running">): Waiter => ({
  call: { verb: "get", resource: "pods", ...call },
  cost: 1,
  sinceMs: 0,
  resolve: () => undefined,
  reject: () => undefined,
});

test("counts the waiting calls by class, and calls of running work as such", () => {
  const line = createWaitingLine();
  expect(line.byClass).toEqual({});
  const event = waiterOf({ priority: "event" });
  line.add(event);
  line.add(waiterOf({ priority: "event", running: true }));
  line.add(waiterOf({ priority: "critical", running: true }));
  line.add(waiterOf({ priority: "resync" }));
  expect(line.byClass).toEqual({ critical: 1, running: 1, event: 1, resync: 1 });
  line.raise(event, "interactive");
  expect(line.byClass).toEqual({ critical: 1, running: 1, interactive: 1, resync: 1 });
  line.drain();
  expect(line.byClass).toEqual({});
});
