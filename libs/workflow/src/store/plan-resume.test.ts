import { expect, test } from "vitest";
import { planResume } from "./plan-resume.ts";
import type { StepRecord } from "./run-record.ts";

const busy = { code: "Error", message: "busy" };
const late = { code: "wait_timeout", message: "nobody" };
const child = { workflow: "smoke", id: "r.test" };
/** In the order of recording. */
const journal = (steps: Readonly<Record<string, StepRecord>>) =>
  new Map(Object.entries(steps).map(([name, step], at) => [name, { ...step, seq: at + 1 }]));

test.for<readonly [what: string, steps: Record<string, StepRecord>, drop: string[]]>([
  ["nothing recorded", {}, []],
  ["the function threw by itself", { a: { kind: "step" } }, []],
  [
    "a step failed, and the function answered that with another",
    { a: { kind: "step" }, b: { kind: "step", error: busy }, back: { kind: "step" } },
    ["b", "back"],
  ],
  [
    "two branches failed",
    { a: { kind: "step", error: busy }, b: { kind: "step", error: busy } },
    ["a", "b"],
  ],
  [
    "a wait that ran out was an answer",
    {
      go: { kind: "signal", error: late },
      a: { kind: "step" },
      b: { kind: "step", error: busy },
    },
    ["b"],
  ],
  [
    "only waits ran out",
    {
      go: { kind: "signal", error: late },
      a: { kind: "step" },
      "go#2": { kind: "signal", error: late },
    },
    ["go#2"],
  ],
  [
    "it was cancelled in a sleep, and cleaned up",
    {
      create: { kind: "step" },
      soak: { kind: "sleep", error: { code: "cancelled", message: "by ann" } },
      clean: { kind: "step" },
    },
    ["soak", "clean"],
  ],
])("%s", ([, steps, drop]) => {
  const kept = Object.keys(steps).length - drop.length;
  expect(planResume(journal(steps))).toEqual({ kind: "resume", drop, kept, children: [] });
});

test("resumes failed children and keeps the others", () => {
  const other = { workflow: "smoke", id: "r.other" };
  const steps = journal({
    test: { kind: "child", error: busy, child },
    other: { kind: "child", value: 1, child: other },
  });
  expect(planResume(steps)).toMatchObject({ drop: ["test", "other"], children: [child] });
});

test("cannot resume an undone run", () => {
  const steps = journal({
    a: { kind: "step" },
    b: { kind: "step", error: busy },
    "undo:a": { kind: "undo" },
  });
  expect(planResume(steps)).toEqual({ kind: "undone", step: "a" });
});
