import { expect, test } from "vitest";
import { closingLine, tally } from "./tally.ts";

test("the closing line names skipped tests only if there are any", () => {
  expect(closingLine(tally([{ name: "a", state: "passed" }]))).toBe("1 passed, 0 failed");
  const some = [
    { name: "a", state: "failed" },
    { name: "b", state: "skipped", reason: "no kubectl" },
  ] as const;
  expect(closingLine(tally(some))).toBe("0 passed, 1 failed, 1 skipped");
  expect(tally(some).notes).toEqual(["skipped: b: no kubectl"]);
});

test("a test skipped without a reason is a failure", () => {
  const verdicts = [{ name: "a", state: "skipped" }] as const;
  expect(tally(verdicts)).toMatchObject({ passed: 0, failed: 1, skipped: 0 });
  expect(tally(verdicts).notes[0]).toContain("ctx.skip");
});

test("tests left out by a name filter do not count", () => {
  const verdicts = [{ name: "a", state: "skipped" }] as const;
  expect(tally(verdicts, { filtered: true })).toMatchObject({ passed: 0, failed: 0, skipped: 0 });
});
