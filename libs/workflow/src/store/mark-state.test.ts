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

test.each([
  { what: "a run that is forgotten", status: undefined, all: steps(), state: "settled" },
  { what: "a run that is done", status: "done", all: steps(bad, bad), state: "settled" },
  { what: "a step at work", status: "running", all: steps(good), state: "live" },
  { what: "a step that succeeded", status: "running", all: steps(good, good), state: "settled" },
  { what: "a step that failed", status: "running", all: steps(good, bad), state: "live" },
  { what: "a success behind a failure", status: "waiting", all: steps(bad, good), state: "live" },
  { what: "a success before one", status: "failed", all: steps(good, good, bad), state: "settled" },
  { what: "the failure of a run", status: "failed", all: steps(good, bad), state: "ended" },
  { what: "a step cut off by the end", status: "cancelled", all: steps(good), state: "ended" },
  {
    what: "a creation, which its undo looks for",
    status: "running",
    all: steps(good, good),
    created: true,
    state: "live",
  },
  {
    what: "a creation of a run that is done",
    status: "done",
    all: steps(good, good),
    created: true,
    state: "settled",
  },
  {
    what: "a creation that was undone",
    status: "failed",
    all: steps(good, bad, { kind: "undo" }),
    created: true,
    state: "settled",
  },
  {
    what: "a run that was undone",
    status: "failed",
    all: steps(good, bad, { kind: "undo" }),
    state: "settled",
  },
  {
    what: "one being undone",
    status: "compensating",
    all: steps(good, bad, { kind: "undo" }),
    state: "live",
  },
] as const)("$what: $state", ({ status, all, state, ...more }) => {
  expect(markStateOf(status, all, { step: "s1", created: "created" in more })).toBe(state);
});
