import { expect, test } from "vitest";
import { createOutcomeTally } from "./outcome-tally.ts";
import type { ResultClass } from "./result-class.ts";

test("only calls that count as responses or failures are slow", () => {
  const tally = createOutcomeTally();
  const classes: ResultClass[] = ["ok", "failed", "throttled", "unauthorized", "neutral"];
  for (const result of classes) {
    tally.note({ generation: 1, class: result, slow: true, retryAfterMs: 0, nowMs: 0 });
  }
  expect(tally.take(1, 0)).toMatchObject({ ok: 1, failed: 1, throttled: 1, slow: 2 });
});
