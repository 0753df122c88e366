import { expect, test } from "vitest";
import { VirtualClock, type Actor } from "./virtual-clock.ts";

test("does not run work that is cancelled while its actor is suspended", () => {
  const clock = new VirtualClock({ random: () => 0, onNetwork: () => undefined });
  const actor: Actor = { name: "worker" };
  const ran: string[] = [];
  const cancelled = clock.plan(actor, 1, () => ran.push("cancelled"), { isWork: true });
  clock.plan(actor, 1, () => ran.push("later"), { isWork: true });
  clock.plan({ name: "other" }, 5, () => ran.push("other"), { isWork: true });
  actor.suspended = { fromMs: clock.nowMs, untilMs: clock.nowMs + 10 };
  expect(clock.step()).toBe(true);
  clock.cancel(cancelled);
  expect(clock.pendingWork).toBe(1);
  while (clock.step());
  expect(ran).toEqual(["other", "later"]);
  expect(clock.pendingWork).toBe(0);
});
