import { expect, test } from "vitest";
import type { BackoffPolicy, Outcome } from "@konverge/core";
import { delayOf, planEnd, type EndPlan } from "./end-plan.ts";

const policy = (baseMs: number): BackoffPolicy => ({
  baseMs,
  factor: 2,
  capMs: 1_000_000,
  steps: Infinity,
  jitter: { kind: "none" },
});
const backoffs = { conflict: policy(1), failure: policy(1_000), rejected: policy(30_000) };
const error = new Error("x");
const plan = (outcome: Outcome, failures = 0, conflicts = 0, maxFailures = Infinity): EndPlan =>
  planEnd(outcome, { failures, conflicts }, { backoffs, maxFailures, random: () => 0 });

const complete: EndPlan = {
  counting: "reset",
  final: true,
  hold: "",
  delayMs: 0,
  dead: false,
  job: "complete",
};

test.each<[Outcome, Partial<EndPlan>]>([
  [{ kind: "done" }, complete],
  [{ kind: "awaitChange" }, complete],
  [{ kind: "gone" }, complete],
  [
    { kind: "requeueAfter", afterMs: 7 },
    { ...complete, timerMs: 7 },
  ],
  [
    { kind: "conflict", error },
    { counting: "conflict", hold: "backoff", delayMs: 4, job: "retry" },
  ],
  [
    { kind: "retry", error },
    { counting: "failure", hold: "backoff", delayMs: 2_000, job: "retry" },
  ],
  [{ kind: "retry", error, retryAfterMs: 9_000 }, { delayMs: 9_000 }],
  [{ kind: "retry", error, retryAfterMs: 10 }, { delayMs: 2_000 }],
  [
    { kind: "rejected", error },
    { counting: "failure", delayMs: 60_000, job: "retry" },
  ],
  [
    { kind: "terminal", error },
    { counting: "failure", final: true, dead: true, job: "complete" },
  ],
  [
    { kind: "deferred", afterMs: 5, cause: "breaker" },
    { counting: "uncount", final: false, hold: "deferred", delayMs: 5, job: "delay" },
  ],
  [
    { kind: "cancelled", cause: "shutdown" },
    { counting: "uncount", final: false, job: "putBack" },
  ],
  [
    { kind: "cancelled", cause: "leaseLost" },
    { counting: "uncount", final: false, job: "putBack" },
  ],
  [
    { kind: "cancelled", cause: "person" },
    { counting: "keep", final: true, job: "complete" },
  ],
])("after 1 failure and 2 conflicts, %j", (outcome, expected) => {
  expect(plan(outcome, 1, 2)).toMatchObject(expected);
});

test("P7: the 51st consecutive conflict starts the failure backoff, regardless of earlier failures", () => {
  const conflict: Outcome = { kind: "conflict", error };
  expect(plan(conflict, 7, 49).delayMs).toBe(1_000_000);
  expect([50, 51, 52].map((conflicts) => plan(conflict, 7, conflicts).delayMs)).toEqual([
    1_000, 2_000, 4_000,
  ]);
});

test("maxFailures includes the current failure and ignores conflicts", () => {
  const retry: Outcome = { kind: "retry", error };
  expect(plan(retry, 1, 0, 3)).toMatchObject({ dead: false, final: false });
  expect(plan(retry, 2, 0, 3)).toMatchObject({ dead: true, final: true, job: "complete" });
  expect(plan({ kind: "conflict", error }, 9, 9, 3)).toMatchObject({ dead: false });
});

test("a finite policy repeats its last step; one without steps repeats the first", () => {
  const short = { ...policy(10), steps: 3 };
  expect([0, 2, 3, 99].map((step) => delayOf(short, step, () => 0))).toEqual([10, 40, 40, 40]);
  expect(delayOf({ ...short, steps: 0 }, 5, () => 0)).toBe(10);
});
