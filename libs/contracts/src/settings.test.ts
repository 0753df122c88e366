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

test("nothing set gives the defaults; REDIS_URL is enough for Redis", () => {
  expect(readSettings({ env: {} })).toMatchObject({
    redisUrl: "redis://127.0.0.1:6379",
    shutdownGrace: 30_000,
    conflictRetry: "both",
    apiPort: 7070,
  });
  expect(readSettings({ env: { REDIS_URL: "redis://r:1" } }).redisUrl).toBe("redis://r:1");
});

test("the environment wins over the file", () => {
  const settings = readSettings({
    file: { concurrency: 4, shutdownGrace: "5s" },
    env: { KONVERGE_CONCURRENCY: "8" },
  });
  expect(settings).toMatchObject({ concurrency: 8, shutdownGrace: 5_000 });
});

test("every wrong key is told at once, by the name it was given under, with the cure", () => {
  const issues = issuesOf(() =>
    readSettings({
      // @ts-expect-error an unknown key, as a typo in a file would be
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
  expect(issues.join("\n")).toMatch(/KONVERGE_TYPO: is not a setting; known are/);
  expect(issues.join("\n")).toMatch(/KONVERGE_SHUTDOWN_GRACE: write a number and a unit/);
  expect(issues.join("\n")).toMatch(/concurency: is not a setting/);
});

test("P12: a password that the Redis client cannot read is told by the setting's name, without it", () => {
  const env = { KONVERGE_REDIS_URL: "redis://:s3cret%@r:1" };
  expect(issuesOf(() => readSettings({ env }))).toEqual([
    "KONVERGE_REDIS_URL: write a % that is meant as such as %25",
  ]);
  const fine = { KONVERGE_REDIS_URL: "redis://:s3cret%25@r:1" };
  expect(readSettings({ env: fine }).redisUrl).toBe(fine.KONVERGE_REDIS_URL);
});

test("secrets come from files too, and not from both at once", () => {
  const folder = mkdtempSync(join(tmpdir(), "konverge-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "token");
  writeFileSync(path, "0123456789abcdef\n");
  expect(readSettings({ env: { KONVERGE_TOKEN_FILE: path } }).token).toBe("0123456789abcdef");
  const both = { KONVERGE_TOKEN: "fedcba9876543210", KONVERGE_TOKEN_FILE: path };
  expect(issuesOf(() => readSettings({ env: both }))).toEqual([
    "KONVERGE_TOKEN and KONVERGE_TOKEN_FILE are both set; unset one",
  ]);
  expect(issuesOf(() => readSettings({ env: { KONVERGE_TOKEN_FILE: `${path}-none` } }))[0]).toMatch(
    /cannot be read/,
  );
});

test("P12: a wrong secret is not quoted", () => {
  const issues = issuesOf(() => readSettings({ env: { KONVERGE_TOKEN: "short-canary" } }));
  expect(issues.join()).not.toContain("short-canary");
});

test("every setting has a name in the environment and a description", () => {
  for (const { env, description } of describeSettings()) {
    expect(env).toMatch(/^KONVERGE_[A-Z_]+$/);
    expect(description.length).toBeGreaterThan(10);
  }
});
