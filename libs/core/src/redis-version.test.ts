import { expect, test } from "vitest";
import { checkRedisVersion } from "./redis-version.ts";

test.each(["6.2.0", "7.0.15", "10.0.0"])("accepts %s", (version) => {
  expect(checkRedisVersion(`# Server\r\nredis_version:${version}\r\nrun_id:a\r\n`)).toBe(version);
});

test.each([
  ["6.0.16", /version 6\.0\.16; 6\.2 or later is required/],
  ["5.9.0", /version 5\.9\.0/],
  ["", /version unknown/],
  ["unstable", /version unstable/],
])("rejects %j", (version, why) => {
  expect(() => checkRedisVersion(`redis_version:${version}\r\n`)).toThrow(why);
});
