import { createAttemptSecrets } from "@konverge/kube";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AttemptLog } from "./attempt-log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function openLog() {
  const secrets = createAttemptSecrets();
  const kept: { message: string }[][] = [];
  const log = new AttemptLog({
    secrets,
    keep: async (lines) => void kept.push(JSON.parse(lines) as { message: string }[]),
  });
  const messages = (hasFailed = false) => log.end(hasFailed)?.log?.map(({ message }) => message);
  return { secrets, log, kept, messages };
}

test("an attempt without lines has no log, and one that ends within a second stores none beside its record", () => {
  const silent = openLog();
  expect(silent.log.end(true)).toBeUndefined();
  const { log, kept, messages } = openLog();
  log.note("info", { size: 2 }, "resized");
  vi.advanceTimersByTime(999);
  expect(messages()).toEqual(["resized"]);
  log.note("info", {}, "too late");
  vi.advanceTimersByTime(10_000);
  expect([kept, silent.kept, vi.getTimerCount()]).toEqual([[], [], 0]);
});

test("stores the lines of an attempt that runs on once a second, while there are new ones", () => {
  const { log, kept } = openLog();
  log.note("debug", {}, "one");
  log.note("info", {}, "two");
  vi.advanceTimersByTime(5_000);
  log.note("info", {}, "three");
  vi.advanceTimersByTime(5_000);
  expect(kept.map((lines) => lines.map(({ message }) => message))).toEqual([
    ["one", "two"],
    ["one", "two", "three"],
  ]);
});

test("keeps debug lines only to explain a failure", () => {
  for (const [hasFailed, expected] of [
    [true, ["a", "b"]],
    [false, ["b"]],
  ] as const) {
    const { log, messages } = openLog();
    log.note("debug", {}, "a");
    log.note("info", {}, "b");
    expect(messages(hasFailed)).toEqual(expected);
  }
});

test("keeps the last 50 lines, at most 4,000 bytes, and counts the others", () => {
  const many = openLog();
  for (let line = 0; line < 60; line += 1) many.log.note("info", {}, `${line}`);
  many.log.note("debug", {}, "not counted");
  expect(many.log.end(false)).toMatchObject({ logOmitted: 11 });
  const long = openLog();
  for (let line = 0; line < 30; line += 1) long.log.note("warn", { text: "x".repeat(400) }, "é");
  const taken = long.log.end(true);
  expect(Buffer.byteLength(JSON.stringify(taken?.log ?? []))).toBeLessThanOrEqual(4_000);
  expect((taken?.log?.length ?? 0) + (taken?.logOmitted ?? 0)).toBe(30);
  expect(taken?.log?.length).toBeGreaterThan(5);
});

test("removes secrets that were read later, also from texts that are too long to keep whole", () => {
  const { log, secrets } = openLog();
  log.note("info", { key: "hidden-value", token: "t" }, `${"x".repeat(490)} hidden-value`);
  log.note("info", { text: "hidden-value ".repeat(1_000) }, "hidden-value ".repeat(1_000));
  secrets.note({ stringData: { a: "hidden-value" } });
  const text = JSON.stringify(log.end(false));
  expect(text).not.toContain("hidden");
  expect(text).toContain('"fields":{"key":"(redacted)","token":"(redacted)"}');
  expect(text).toContain('"fields":{"omitted":"13011 characters"}');
});
