import { KonvergeError, TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { findRootErrors } from "./root-errors.ts";

const ours = new TerminalError("never");
const timedOut = new KonvergeError("timed_out", "late");
const wrap = (cause: unknown) => new Error("outer", { cause });
const cycle = new Error("a");
cycle.cause = wrap(cycle);

const cases: readonly [string, unknown, unknown[]][] = [
  ["ours itself", ours, [ours]],
  ["ours as a cause of a cause", wrap(wrap(ours)), [ours]],
  [
    "ours, whatever caused it",
    new TerminalError("x", { cause: timedOut }),
    [expect.any(TerminalError)],
  ],
  ["a foreign error", new Error("x"), [undefined]],
  ["no error at all", undefined, [undefined]],
  ["an object with a cause", { cause: ours }, [ours]],
  [
    "each part of an AggregateError",
    new AggregateError([wrap(ours), 5, timedOut]),
    [undefined, timedOut, ours],
  ],
  ["an empty AggregateError with a cause", new AggregateError([], "x", { cause: ours }), [ours]],
  ["a cycle of causes", cycle, [undefined]],
  ["an AggregateError that holds itself", holdsItself(), [undefined]],
];
test.each(cases)("%s", (_title, thrown, expected) => {
  expect(findRootErrors(thrown)).toEqual(expected);
});

test("bounds an endless tree", () => {
  const parts = (): unknown[] => [
    {
      get errors() {
        return parts();
      },
    },
    {
      get errors() {
        return parts();
      },
    },
  ];
  expect(findRootErrors(new AggregateError(parts()))).toEqual([undefined]);
});

function holdsItself(): AggregateError {
  const errors: unknown[] = [];
  const error = new AggregateError([]);
  error.errors = errors;
  errors.push(error);
  return error;
}
