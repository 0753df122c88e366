import { afterEach, expect, test, vi } from "vitest";
import { ProcessQuarantine } from "./process-quarantine.ts";

afterEach(() => void vi.useRealTimers());

/** Attempts by name, in the order of their starts. */
function open() {
  const quarantine = new ProcessQuarantine();
  const started: string[] = [];
  const enter = (name: string, signal = new AbortController().signal) => {
    const isSuspect = name.startsWith("suspect");
    const waits = quarantine.enter(isSuspect, signal);
    if (waits === undefined) started.push(name);
    else void waits.then(() => started.push(name));
  };
  const leave = async (name: string) => {
    quarantine.leave(name.startsWith("suspect"));
    await vi.waitFor(() => undefined);
  };
  return { started, enter, leave };
}

test("a suspect runs alone: after the others, and before those that come later", async () => {
  const { started, enter, leave } = open();
  for (const name of ["a", "b", "suspect 1", "c", "suspect 2"]) enter(name);
  expect(started).toEqual(["a", "b"]);
  await leave("a");
  expect(started).toEqual(["a", "b"]);
  await leave("b");
  expect(started).toEqual(["a", "b", "suspect 1"]);
  await leave("suspect 1");
  expect(started).toEqual(["a", "b", "suspect 1", "suspect 2"]);
  await leave("suspect 2");
  expect(started.at(-1)).toBe("c");
  enter("d");
  expect(started.at(-1)).toBe("d");
});

test("an aborted attempt does not wait", async () => {
  const { started, enter, leave } = open();
  const abort = new AbortController();
  enter("suspect");
  enter("a", abort.signal);
  abort.abort();
  await leave("a");
  expect(started).toEqual(["suspect", "a"]);
});

test("a suspect waits for a minute at most", async () => {
  vi.useFakeTimers();
  const { started, enter } = open();
  enter("hangs");
  enter("suspect");
  await vi.advanceTimersByTimeAsync(59_000);
  expect(started).toEqual(["hangs"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(started).toEqual(["hangs", "suspect"]);
});
