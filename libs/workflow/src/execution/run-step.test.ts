import type { Limits } from "@konverge/core";
import { expect, test } from "vitest";
import type { RunJournal } from "../journal/run-journal.ts";
import { Branch } from "../journal/branch.ts";
import { runStep } from "./run-step.ts";

const running = new AbortController().signal;
const down = () => Promise.reject(new Error("READONLY"));

/** A journal with one slot of a limit, whose notes fail. */
function journalWith(onTaken: () => void = () => undefined) {
  let held = 0;
  const limits: Limits = {
    check: () => undefined,
    take: async () => {
      held += 1;
      onTaken();
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
  return { journal: journal as RunJournal, held: () => held };
}
const body = () => expect.unreachable("the body does not begin");

test.each([
  ["the check before the body", { mayBegin: down }],
  ["the note of an unsafe body", { unsafe: true }],
])("a step frees its slot of a limit if %s fails in Redis", async (_title, options) => {
  const { journal, held } = journalWith();
  const step = runStep(journal, "charge", "step", body, { limit: "api", ...options });
  await expect(step).rejects.toThrow("READONLY");
  expect(held()).toBe(0);
});

test("a step does not begin if its branch loses the race while it waits for a slot", async () => {
  const branch = new Branch();
  const { journal, held } = journalWith(() => branch.lose());
  const step = branch.run(() => runStep(journal, "charge", "step", body, { limit: "api" }));
  expect(await step).toEqual({ waitUntilMs: undefined });
  expect(held()).toBe(0);
});
