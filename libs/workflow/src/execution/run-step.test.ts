import type { Limits } from "@konverge/core";
import { expect, test } from "vitest";
import type { RunJournal } from "../journal/run-journal.ts";
import { runStep } from "./run-step.ts";

const running = new AbortController().signal;
const down = () => Promise.reject(new Error("READONLY"));

test.each([
  ["the check before the body", { mayBegin: down }],
  ["the note of an unsafe body", { unsafe: true }],
])("a step frees its slot of a limit if %s fails in Redis", async (_title, options) => {
  let held = 0;
  const limits: Limits = {
    check: () => undefined,
    take: async () => {
      held += 1;
      return { kind: "held", permit: { signal: running, release: () => (held -= 1) } };
    },
    leave: () => undefined,
  };
  const journal: Partial<RunJournal> = {
    permits: { limits, key: "run" },
    held: { died: false } as RunJournal["held"],
    stopped: running,
    stoppedOrCancelled: () => running,
    isPausing: false,
    places: new Map(),
    progressOf: () => undefined,
    throwCancel: async () => undefined,
    nowMs: () => 0,
    note: down,
  };
  const body = () => expect.unreachable("the body does not begin");
  const step = runStep(journal as RunJournal, "charge", "step", body, { limit: "api", ...options });
  await expect(step).rejects.toThrow("READONLY");
  expect(held).toBe(0);
});
