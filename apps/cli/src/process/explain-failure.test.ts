import { ProblemError } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { exitCodeOf } from "./exit-codes.ts";
import { explainFailure } from "./explain-failure.ts";

const options = { "/by": "--by", "/ratePerSecond": "<rate>" };
const problem = (
  code: string,
  status: number,
  detail: string,
  errors: ProblemError["errors"] = [],
) => new ProblemError({ code, status, title: "t", detail, errors: [...errors] });

test.each([
  ["redis://ada:s3cret@redis.example:6380/1", "redis://redis.example:6380"],
  ["rediss://:s3cret@redis.example?password=s3cret", "rediss://redis.example"],
  ["unix:///run/redis.sock?password=s3cret", "unix:///run/redis.sock"],
  ["s3cret", "its URL"],
])("P12: shows only the address of %s", (redisUrl, address) => {
  const said =
    "Redis cannot be used: connect ECONNREFUSED; start Redis, or correct KONVERGE_REDIS_URL";
  expect(explainFailure(problem("redis_unavailable", 503, said), { redisUrl, options })).toEqual({
    line: `Redis at ${address} cannot be used: connect ECONNREFUSED; start Redis, or correct KONVERGE_REDIS_URL`,
    exitCode: 6,
  });
});

test("names invalid fields by their options in one line", () => {
  const issues = [
    { pointer: "/by", detail: "is missing" },
    { pointer: "/ratePerSecond", detail: "is 0" },
    { pointer: "/prefix", detail: "KONVERGE_PREFIX: invalid\nletters" },
  ];
  const wanted = {
    line: "--by: is missing; <rate>: is 0; KONVERGE_PREFIX: invalid letters",
    exitCode: 2,
  };
  const context = { redisUrl: undefined, options };
  expect(
    explainFailure(new KonvergeError("invalid_request", "wrong", { issues }), context),
  ).toEqual(wanted);
  expect(explainFailure(problem("invalid_request", 422, "wrong", issues), context)).toEqual(wanted);
});

test("removes control characters of a server and appends the fix", () => {
  const { line, exitCode } = explainFailure(problem("not_found", 404, "no a\u001B[2J\nb"), {
    redisUrl: undefined,
    options,
    fixes: { not_found: "see `konverge guard list`" },
  });
  expect(line).toBe("no a?[2J b; see `konverge guard list`");
  expect(exitCode).toBe(3);
});

test.each([
  [401, 7],
  [403, 7],
  [404, 3],
  [409, 4],
  [422, 2],
  [429, 6],
  [500, 1],
  [503, 6],
  [0, 6],
])("maps an unknown code with status %i to exit code %i", (status, exitCode) => {
  expect(exitCodeOf({ code: "of_a_newer_server", status })).toBe(exitCode);
});
