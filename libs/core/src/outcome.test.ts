import { expect, test } from "vitest";
import {
  endedWell,
  handlerSucceeded,
  isFinal,
  OUTCOME_KINDS,
  type OutcomeKind,
} from "./outcome.ts";

// Exhaustive by type: a new outcome must be placed here.
const FINAL: Record<OutcomeKind, boolean> = {
  done: true,
  requeueAfter: true,
  awaitChange: true,
  awaitApproval: true,
  gone: true,
  terminal: true,
  conflict: false,
  retry: false,
  rejected: false,
  deferred: false,
  cancelled: false,
};

test.each(Object.entries(FINAL) as [OutcomeKind, boolean][])(
  "%s finishes its requests: %s",
  (kind, final) => {
    expect(isFinal(kind)).toBe(final);
  },
);

test("lists each outcome once", () => {
  expect([...OUTCOME_KINDS].toSorted()).toEqual(Object.keys(FINAL).toSorted());
});

test("a deleted object ends an attempt well, although no handler succeeded", () => {
  expect(OUTCOME_KINDS.filter(endedWell)).toEqual([
    "done",
    "requeueAfter",
    "awaitChange",
    "awaitApproval",
    "gone",
  ]);
  expect(OUTCOME_KINDS.filter(handlerSucceeded)).toEqual(["done", "requeueAfter", "awaitChange"]);
});

test.each(["lost", "constructor", undefined])("%s is neither final nor a success", (outcome) => {
  expect([isFinal(outcome), endedWell(outcome), handlerSucceeded(outcome)]).toEqual([
    false,
    false,
    false,
  ]);
});
