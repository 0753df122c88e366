import { expect, test } from "vitest";
import { isSensitive, redactPatch } from "./redact.ts";

test("P12: keeps only the field paths of a Secret's patch", () => {
  const patch = { data: { password: "Y2FuYXJ5" }, metadata: { labels: { token: "canary" } } };
  const redacted = redactPatch("secrets.", patch);
  expect(JSON.stringify(redacted)).not.toMatch(/Y2FuYXJ5|canary/);
  expect(redacted).toMatchObject({ data: { password: "(redacted)" } });
  expect(isSensitive("secrets")).toBe(true);
  expect(isSensitive("configmaps.")).toBe(false);
});

test("keeps deletions", () => {
  expect(redactPatch("secrets.", { data: { a: null } })).toEqual({ data: { a: null } });
});

test("truncates large patches with a note", () => {
  const patch = { text: "x".repeat(1_000), list: Array.from({ length: 100 }, (_, n) => n) };
  const cut = JSON.stringify(redactPatch("configmaps.", patch));
  expect(cut.length).toBeLessThan(600);
  expect(cut).toContain("1000 characters");
  expect(cut).toContain("100 entries");
});
