import { KonvergeError, TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { failsRun } from "./fails-run.ts";
import { StepFailedError } from "./step-failed-error.ts";

const step = new StepFailedError("a", { code: "Error", message: "no" });
const bug = new TypeError("x is undefined");

test.each<{ what: string; error: unknown; fails: boolean }>([
  { what: "a TerminalError", error: new TerminalError("no"), fails: true },
  { what: "a failed step", error: step, fails: true },
  { what: "the cancellation", error: new KonvergeError("cancelled", "no"), fails: true },
  { what: "an error caused by a failed step", error: new Error("x", { cause: step }), fails: true },
  { what: "several failed steps", error: new AggregateError([step, step]), fails: true },
  { what: "a failed step beside a bug", error: new AggregateError([step, bug]), fails: false },
  { what: "no error of several", error: new AggregateError([]), fails: false },
  { what: "a bug", error: bug, fails: false },
  { what: "a plain error", error: new Error("no"), fails: false },
  { what: "a misuse of a verb", error: new KonvergeError("invalid_workflow", "x"), fails: false },
  { what: "text", error: "no", fails: false },
])("$what fails a run: $fails", ({ error, fails }) => {
  expect(failsRun(error)).toBe(fails);
});

test("ends at a circular cause", () => {
  const error = new Error("x");
  error.cause = error;
  expect(failsRun(error)).toBe(false);
});
