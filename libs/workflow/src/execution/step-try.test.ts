import { expect, test } from "vitest";
import { StepTry } from "./step-try.ts";
import type { OpenVerbs } from "../verbs/create-step-verbs.ts";

function open() {
  const signals: AbortSignal[] = [];
  const tried = new StepTry({
    step: "s",
    attempt: 2,
    log: undefined as never,
    heartbeats: undefined as never,
    makeKey: () => "key",
    openVerbs(signal) {
      signals.push(signal);
      const verbs = { delete: async () => undefined, on: () => verbs };
      return { verbs, assertEnded: () => undefined } as unknown as OpenVerbs;
    },
  });
  return { tried, signals };
}

test("opens verbs once, on first use, with the signal of the attempt", async () => {
  const { tried, signals } = open();
  const { signal, attempt, idempotencyKey } = tried;
  expect([attempt, idempotencyKey, signals]).toEqual([2, "key", []]);
  await tried.delete({ apiVersion: "v1", kind: "Pod", name: "p" });
  const { on } = tried;
  expect(on).toBeTypeOf("function");
  expect(signals).toEqual([signal]);
});

test("the first end() aborts the signal with its reason", () => {
  const { tried } = open();
  const { signal } = tried;
  expect(signal.aborted).toBe(false);
  tried.end(() => new Error("first"));
  tried.end(() => new Error("second"));
  expect(signal.reason).toEqual(new Error("first"));
});

test("an abandoned body gets an aborted signal and aborted verbs", () => {
  const { tried, signals } = open();
  tried.end(() => new Error("over"));
  expect(tried.delete).toBeTypeOf("function");
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(tried.signal.reason).toEqual(new Error("over"));
});
