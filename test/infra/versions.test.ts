import { expect, test } from "vitest";
import { cacheDirectory } from "../../infra/host/cache-directory.js";
import { isNewEnough, parseServerInfo, parseServerVersion } from "../../infra/redis/version.js";
import {
  chooseNode,
  isAtLeast,
  OLDEST_NODE,
  parseVersion,
} from "../../infra/setup/node-version.js";

test.each([
  ["v24.12.0", true],
  ["24.11.9", false],
  ["v26.0.0", true],
  ["v20.20.2", false],
  ["v27.0.0-nightly20261101", true],
  ["", false],
  ["node", false],
])("Node %s is new enough: %s", (version, expected) => {
  expect(isAtLeast(version)).toBe(expected);
});

test("compares numbers, not texts", () => {
  expect(isAtLeast("v24.9.0", "24.12.0")).toBe(false);
  expect(isAtLeast("v100.0.0")).toBe(true);
  expect(parseVersion(" v1.22.333\n")).toEqual([1, 22, 333]);
});

test("selects the first Node that is new enough", () => {
  const old = { path: "/usr/bin/node", version: "v20.20.2" };
  const packaged = { path: "node_modules/.bin/node", version: "v26.10.0" };
  expect(chooseNode([old, packaged])).toBe(packaged);
  expect(chooseNode([{ ...old, version: `v${OLDEST_NODE}` }, packaged])?.path).toBe(old.path);
  expect(chooseNode([old, { ...packaged, version: "" }])).toBeUndefined();
});

test.each([
  ["Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", "7.0.15", "redis"],
  ["Valkey server v=8.1.4 sha=00000000:0 malloc=libc bits=64", "8.1.4", "valkey"],
])("reads %s", (text, version, kind) => {
  expect(parseServerVersion(text)).toEqual({ version, kind });
});

test("rejects an executable that prints no version", () => {
  expect(parseServerVersion("command not found")).toBeUndefined();
});

test("distinguishes Valkey from Redis by INFO, where it reports 7.2", () => {
  const info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.4\r\n";
  expect(parseServerInfo(info)).toEqual({ version: "8.1.4", kind: "valkey" });
  expect(parseServerInfo("redis_version:6.2.0\r\n")).toEqual({ version: "6.2.0", kind: "redis" });
});

test.each([
  ["6.2.0", true],
  ["6.0.16", false],
  ["7.0.15", true],
  ["10.0.0", true],
])("Redis %s is new enough: %s", (version, expected) => {
  expect(isNewEnough(version)).toBe(expected);
});

test("uses the cache folder of each system", () => {
  expect(cacheDirectory({ env: {}, platform: "linux", home: "/h" })).toBe("/h/.cache/konverge");
  expect(cacheDirectory({ env: {}, platform: "darwin", home: "/h" })).toBe(
    "/h/Library/Caches/konverge",
  );
  expect(cacheDirectory({ env: { XDG_CACHE_HOME: "/c" }, platform: "linux", home: "/h" })).toBe(
    "/c/konverge",
  );
  // The XDG specification: a relative path must be ignored.
  expect(cacheDirectory({ env: { XDG_CACHE_HOME: "c" }, platform: "linux", home: "/h" })).toBe(
    "/h/.cache/konverge",
  );
});
