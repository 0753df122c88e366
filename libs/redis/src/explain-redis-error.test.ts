import { expect, test } from "vitest";
import { explainRedisError } from "./explain-redis-error.ts";

test.each([
  ["OOM command not allowed when used memory > 'maxmemory'.", /maxmemory/],
  ["READONLY You can't write against a read only replica.", /URL of the primary/],
  ["MISCONF Redis is configured to save RDB snapshots", /free space/],
  ["BUSY Redis is busy running a script.", /SCRIPT KILL/],
  ["LOADING Redis is loading the dataset in memory", /loading/],
  [
    "Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN Hash slot not served",
    /no primary/,
  ],
  ["TRYAGAIN Multiple keys request during rehashing of slot", /being moved/],
  ["MOVED 5718 127.0.0.1:7001", /redis\+cluster:/],
  ["ERR This instance has cluster support disabled", /redis:\/\/host/],
  ["NOAUTH Authentication required.", /password/],
  ["connect ECONNREFUSED 127.0.0.1:1", /start Redis/],
])("suggests a fix for %s", (message, fix) => {
  const explained = explainRedisError(new Error(message), 1_000);
  expect(explained).toMatchObject({ code: "redis_unavailable", retryAfterMs: 1_000 });
  expect(explained.message).toContain(message.replace(/\.$/, ""));
  expect(explained.message).toMatch(fix);
});

test("explains an unreachable Redis Cluster by its last node's error", () => {
  const error = Object.assign(new Error("Failed to refresh slots cache."), {
    lastNodeError: new Error("connect ECONNREFUSED 127.0.0.1:1"),
  });
  expect(explainRedisError(error, 1).message).toMatch(
    /slots cache\. connect ECONNREFUSED .*; start Redis/,
  );
});

test("reports an unknown error without a fix", () => {
  expect(explainRedisError(new Error("odd"), 1).message).toBe("Redis cannot be used: odd");
});

test("explains a command without an answer by its time", () => {
  const error = new Error("Command timed out");
  expect(explainRedisError(error, 1, 1_999.6).message).toMatch(
    /^Redis cannot be used: no answer within 2000 ms; .*stalled or overloaded/,
  );
  expect(explainRedisError(error, 1).message).toMatch(/: no answer in time; .*overloaded/);
});
