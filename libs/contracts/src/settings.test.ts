import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isKonvergeError } from "@konverge/core";
import { expect, onTestFinished, test } from "vitest";
import { describeSettings, readSettings } from "./settings.ts";

function issuesOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (isKonvergeError(error)) return error.issues.map(({ detail }) => detail);
    throw error;
  }
  return [];
}

test("returns defaults and reads REDIS_URL", () => {
  expect(readSettings({ env: {} })).toMatchObject({
    redisUrl: "redis://127.0.0.1:6379",
    shutdownGrace: 30_000,
    conflictRetry: "both",
    apiPort: 7070,
  });
  expect(readSettings({ env: { REDIS_URL: "redis://r:1" } }).redisUrl).toBe("redis://r:1");
});

test("prefers the environment over the file", () => {
  const settings = readSettings({
    file: { concurrency: 4, shutdownGrace: "5s" },
    env: { KONVERGE_CONCURRENCY: "8" },
  });
  expect(settings).toMatchObject({ concurrency: 8, shutdownGrace: 5_000 });
});

test("keeps ended runs for 7 days, or a given time of at least a minute", () => {
  const read = (KONVERGE_RUN_RETENTION: string) =>
    readSettings({ env: { KONVERGE_RUN_RETENTION } });
  expect(readSettings({ env: {} }).runRetention).toBe(7 * 86_400_000);
  expect(read("36h").runRetention).toBe(36 * 3_600_000);
  expect(issuesOf(() => read("30s"))).toEqual([expect.stringContaining("must be at least 1m")]);
});

test("reports all invalid keys together, by name and with a fix", () => {
  const issues = issuesOf(() =>
    readSettings({
      // @ts-expect-error an unknown key, such as a typo
      file: { concurency: 4 },
      env: {
        KONVERGE_API_PORT: "seven",
        KONVERGE_SHUTDOWN_GRACE: "5",
        KONVERGE_REDIS_URL: "localhost",
        KONVERGE_TYPO: "1",
      },
    }),
  );
  expect(issues).toHaveLength(5);
  expect(issues.join("\n")).toMatch(/KONVERGE_TYPO: unknown setting; known settings: /);
  expect(issues.join("\n")).toMatch(/KONVERGE_SHUTDOWN_GRACE: must be a number and a unit/);
  expect(issues.join("\n")).toMatch(/concurency: unknown setting/);
});

test("P12: reports an unreadable Redis password without its value", () => {
  const env = { KONVERGE_REDIS_URL: "redis://:s3cret%@r:1" };
  expect(issuesOf(() => readSettings({ env }))).toEqual([
    "KONVERGE_REDIS_URL: encode a literal % as %25",
  ]);
  const fine = { KONVERGE_REDIS_URL: "redis://:s3cret%25@r:1" };
  expect(readSettings({ env: fine }).redisUrl).toBe(fine.KONVERGE_REDIS_URL);
});

test("reads secrets from a file or from the environment, but not from both", () => {
  const folder = mkdtempSync(join(tmpdir(), "konverge-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "token");
  const token = "0123456789abcdef".repeat(2);
  writeFileSync(path, `${token}\n`);
  expect(readSettings({ env: { KONVERGE_TOKEN_FILE: path } }).token).toBe(token);
  const both = { KONVERGE_TOKEN: "fedcba9876543210".repeat(2), KONVERGE_TOKEN_FILE: path };
  expect(issuesOf(() => readSettings({ env: both }))).toEqual([
    "KONVERGE_TOKEN and KONVERGE_TOKEN_FILE are both set; unset one",
  ]);
  expect(issuesOf(() => readSettings({ env: { KONVERGE_TOKEN_FILE: `${path}-none` } }))[0]).toMatch(
    /cannot be read/,
  );
});

test("P12: does not quote an invalid secret", () => {
  const issues = issuesOf(() => readSettings({ env: { KONVERGE_TOKEN: "short-canary" } }));
  expect(issues.join()).not.toContain("short-canary");
});

test("requires a token of 32 characters, which are 128 random bits in hexadecimal", () => {
  const read = (length: number) => readSettings({ env: { KONVERGE_TOKEN: "a".repeat(length) } });
  expect(issuesOf(() => read(31))).toEqual(["KONVERGE_TOKEN: must have at least 32 characters"]);
  expect(read(32).token).toHaveLength(32);
});

test("every setting has an environment variable and a description", () => {
  for (const { env, description } of describeSettings()) {
    expect(env).toMatch(/^KONVERGE_[A-Z_]+$/);
    expect(description.length).toBeGreaterThan(10);
  }
});

test.each([
  { name: "KONVERGE_RUN_RECORD_LIMIT_KIB", value: "0", why: "must be 1 to 16384 (KiB)" },
  { name: "KONVERGE_RUN_RECORD_LIMIT_KIB", value: "20000", why: "must be 1 to 16384 (KiB)" },
  { name: "KONVERGE_RUN_RECHECK", value: "500ms", why: "must be at least 1s" },
  { name: "KONVERGE_RUN_SWEEP", value: "0s", why: "must be at least 1s" },
])("rejects $name=$value with the fix", ({ name, value, why }) => {
  expect(issuesOf(() => readSettings({ env: { [name]: value } }))).toEqual([`${name}: ${why}`]);
});
