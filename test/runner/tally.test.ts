import { expect, test } from "vitest";
import { closingLine, judge, tally } from "./tally.ts";

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

test("a test that passes only the second time is counted as passed and named as unstable", () => {
  const first = [
    { name: "a", state: "failed" },
    { name: "b", state: "passed" },
  ] as const;
  const again = [
    { name: "a", state: "passed" },
    { name: "b", state: "passed" },
  ] as const;
  const result = tally(judge(first, again));
  expect(result).toMatchObject({ passed: 2, failed: 0 });
  expect(result.notes).toEqual([expect.stringContaining("UNSTABLE: a ")]);
});

test("a file that fails twice, or does not run to its end again, has failed", () => {
  const first = [{ name: "a", state: "failed" }] as const;
  expect(tally(judge(first, first))).toMatchObject({ passed: 0, failed: 1, notes: [] });
  expect(tally(judge(first, []))).toMatchObject({ passed: 0, failed: 1, notes: [] });
});
