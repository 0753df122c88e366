import { expect, test } from "vitest";
import { setCondition, type Condition, type WithConditions } from "./conditions.ts";

const at = (second: number) => () => new Date(Date.UTC(2026, 0, 1, 0, 0, second, 500));
const ready = (status: Condition["status"], rest: Partial<Condition> = {}): Condition => ({
  type: "Ready",
  status,
  reason: "Counted",
  ...rest,
});

test("adds a condition to a draft without a status", () => {
  const draft: WithConditions = {};
  expect(setCondition(draft, ready("True", { observedGeneration: 3 }), at(1))).toBe(true);
  expect(draft.status?.conditions).toEqual([
    {
      ...ready("True"),
      message: "",
      observedGeneration: 3,
      lastTransitionTime: "2026-01-01T00:00:01Z",
    },
  ]);
});
test("changes nothing for an equal condition", () => {
  const draft: WithConditions = {};
  setCondition(draft, ready("True"), at(1));
  const before = structuredClone(draft);
  expect(setCondition(draft, ready("True"), at(9))).toBe(false);
  expect(draft).toEqual(before);
});
test("copies reason, message and generation without moving the transition time", () => {
  const draft: WithConditions = {};
  setCondition(draft, ready("True"), at(1));
  const next = ready("True", { reason: "Other", message: "m", observedGeneration: 4 });
  expect(setCondition(draft, next, at(2))).toBe(true);
  expect(draft.status?.conditions).toEqual([
    { ...next, lastTransitionTime: "2026-01-01T00:00:01Z" },
  ]);
});
test("moves the transition time when the status changes, and keeps other conditions", () => {
  const draft: WithConditions = {};
  setCondition(draft, { ...ready("True"), type: "Synced" }, at(1));
  setCondition(draft, ready("True"), at(1));
  setCondition(draft, ready("False"), at(2));
  expect(
    draft.status?.conditions?.map(({ type, status, lastTransitionTime }) => [
      type,
      status,
      lastTransitionTime,
    ]),
  ).toEqual([
    ["Synced", "True", "2026-01-01T00:00:01Z"],
    ["Ready", "False", "2026-01-01T00:00:02Z"],
  ]);
});
test.each([
  ["type", { type: "" }],
  ["status", { status: "Yes" as Condition["status"] }],
  ["reason", { reason: "two words" }],
  ["message", { message: "x".repeat(32_769) }],
])("rejects an invalid %s by name, before the API server does", (field, bad) => {
  const draft: WithConditions = {};
  expect(() => setCondition(draft, { ...ready("True"), ...bad })).toThrow(field);
  expect(draft).toEqual({});
});
