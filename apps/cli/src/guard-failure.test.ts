import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { explainGuardFailure } from "./guard-failure.ts";

const explain = (error: KonvergeError, redisUrl?: string, cluster?: string) =>
  explainGuardFailure(error, { cluster, redisUrl });

test.each([
  ["redis://ada:s3cret@redis.example:6380/1", "redis://redis.example:6380"],
  ["rediss://:s3cret@redis.example?password=s3cret", "rediss://redis.example"],
  ["unix:///run/redis.sock?password=s3cret", "unix:///run/redis.sock"],
  ["s3cret", "its URL"],
])("P12: of %s no more than the address is said", (url, address) => {
  const away = new KonvergeError(
    "redis_unavailable",
    "Redis cannot be used: connect ECONNREFUSED; start it, or correct KONVERGE_REDIS_URL",
  );
  expect(explain(away, url)).toEqual({
    line: `Redis at ${address} cannot be used: connect ECONNREFUSED; start it, or correct KONVERGE_REDIS_URL`,
    exitCode: 6,
  });
});

test("wrong fields are named as they are typed, all in one line", () => {
  const issues = [
    { pointer: "/by", detail: "say who" },
    { pointer: "/ratePerSecond", detail: "is 0" },
    { pointer: "/prefix", detail: "KONVERGE_PREFIX: write\nletters" },
  ];
  expect(explain(new KonvergeError("invalid_request", "wrong", { issues }))).toEqual({
    line: "--by: say who; <rate>: is 0; KONVERGE_PREFIX: write letters",
    exitCode: 2,
  });
});

test("an unknown cluster is bad input, and cannot steer the terminal", () => {
  const { line, exitCode } = explain(
    new KonvergeError("not_found", "?"),
    undefined,
    "a\u001B[2J\nb",
  );
  expect(line).toMatch(/^<cluster>: .* "a\?\[2J b" yet; .*konverge guard list/);
  expect(exitCode).toBe(3);
});
