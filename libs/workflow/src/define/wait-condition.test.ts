import { defined } from "@konverge/core";
import { describe, expect, test } from "vitest";
import {
  all,
  any,
  asCondition,
  judge,
  type ObjectCondition,
  type Verdict,
  type WaitCondition,
} from "./wait-condition.ts";

const met = (value: string): Verdict => ({ kind: "met", value });
const pending = (message: string, againAtMs?: number): Verdict => ({
  kind: "pending",
  message,
  ...defined({ againAtMs }),
});
const failing = (message: string): Verdict => ({ kind: "failing", code: "object_failed", message });
const failed = (message: string): Verdict => ({ kind: "failed", code: "object_deleted", message });

/** A condition that comes to this, whatever is read. */
const reported = (verdict: Verdict): WaitCondition => {
  const target = { apiVersion: "v1", kind: "Pod", name: "a" };
  const condition: ObjectCondition = { kind: "object", target, judge: () => verdict };
  return condition;
};
const judged = (condition: WaitCondition) =>
  judge(asCondition(condition, "test"), (one) =>
    one.judge({ object: undefined, isSensitive: false, nowMs: 0 }),
  );

describe("all", () => {
  test.each([
    { of: [met("a"), met("b")], is: { kind: "met", value: ["a", "b"] } },
    { of: [met("a"), pending("p")], is: pending("p") },
    { of: [pending("p", 7), pending("q", 5), pending("r")], is: pending("p; q; r", 5) },
    { of: [..."abcde"].map((name) => pending(name)), is: pending("a; b; c; and 2 more") },
    { of: [pending("p"), failing("f")], is: failing("f") },
    { of: [failing("f"), failed("g"), met("a")], is: failed("g") },
  ])("$of: $is", ({ of, is }) => {
    expect(judged(all(...of.map(reported)))).toEqual(is);
  });
});

describe("any", () => {
  test.each([
    {
      of: [pending("p"), met("b"), met("c")],
      is: { kind: "met", value: { index: 1, value: "b" } },
    },
    { of: [failed("g"), met("b")], is: { kind: "met", value: { index: 1, value: "b" } } },
    { of: [failed("g"), pending("p")], is: pending("p") },
    { of: [failed("g"), failed("h")], is: failed("g; h") },
    { of: [failed("g"), failing("f")], is: { ...failing("g; f"), code: "object_deleted" } },
  ])("$of: $is", ({ of, is }) => {
    expect(judged(any(...of.map(reported)))).toEqual(is);
  });
});

test("nests groups", () => {
  const inner = any(reported(pending("p")), reported(met("b")));
  expect(judged(all(reported(met("a")), inner))).toEqual({
    kind: "met",
    value: ["a", { index: 1, value: "b" }],
  });
});
