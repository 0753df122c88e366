import { expect, test } from "vitest";
import { markStateOf } from "./mark-state.ts";
import type { StepRecord } from "./run-record.ts";

const error = { code: "x", message: "x" };
const steps = (...records: (Pick<StepRecord, "error" | "kind"> | undefined)[]) =>
  new Map(
    records.flatMap((record, index) =>
      record === undefined ? [] : [[`s${index}`, { ...record, seq: index + 1 }] as const],
    ),
  );
const good = { kind: "step" } as const;
const bad = { kind: "step", error } as const;

test.for([
  ["a run that is forgotten", undefined, steps(), "settled"],
  ["a run that is done", "done", steps(bad, bad), "settled"],
  ["a step at work", "running", steps(good), "live"],
  ["a step that succeeded", "running", steps(good, good), "settled"],
  ["a step that failed", "running", steps(good, bad), "live"],
  ["a success behind a failure", "waiting", steps(bad, good), "live"],
  ["a success before one", "failed", steps(good, good, bad), "settled"],
  ["the failure of a run", "failed", steps(good, bad), "ended"],
  ["a step cut off by the end", "cancelled", steps(good), "ended"],
  ["a creation, which its undo looks for", "running", steps(good, good), "live", true],
  ["a creation of a run that is done", "done", steps(good, good), "settled", true],
  ["a creation that was undone", "failed", steps(good, bad, { kind: "undo" }), "settled", true],
  ["a run that was undone", "failed", steps(good, bad, { kind: "undo" }), "settled"],
  ["one being undone", "compensating", steps(good, bad, { kind: "undo" }), "live"],
] as const)("%s", ([, status, all, state, created = false]) => {
  expect(markStateOf(status, all, { step: "s1", created })).toBe(state);
});
