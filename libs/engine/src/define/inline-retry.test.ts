import { expect, test } from "vitest";
import { inlineRetry } from "./inline-retry.ts";

test("without a policy, a job retry follows the tries of the client", () => {
  expect(inlineRetry("both", undefined)).toBeUndefined();
});

test("a policy replaces the tries inside the handler and keeps the other defaults", () => {
  const rest = { baseMs: 10, factor: 2, jitter: { kind: "full" } };
  expect(inlineRetry("both", { steps: 2 })).toEqual({ ...rest, capMs: 1_000, steps: 2 });
  expect(inlineRetry("both", { capMs: 500 })).toEqual({ ...rest, capMs: 500, steps: 7 });
  expect(inlineRetry("inline", { capMs: 500 })).toEqual({ ...rest, capMs: 500, steps: Infinity });
  expect(inlineRetry("inline", undefined)).toEqual({ ...rest, capMs: 1_000, steps: Infinity });
});

test("conflictRetry job retries nothing inside the handler", () => {
  expect(inlineRetry("job", { steps: 2 })).toBe("none");
});
