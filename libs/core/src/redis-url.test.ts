import { expect, test } from "vitest";
import { parseRedisUrl, showRedisUrl } from "./redis-url.ts";

test("leaves single-server URLs to the client", () => {
  for (const url of ["redis://:p@h:1/2", "rediss://h", "unix:///run/redis.sock"]) {
    expect(parseRedisUrl(url)).toEqual({ kind: "single", url, files: {} });
  }
});

test("parses Redis Cluster URLs with several nodes, a default port, IPv6, a user and TLS", () => {
  expect(parseRedisUrl("redis+cluster://a:7001,b,[::1]:7003")).toEqual({
    kind: "cluster",
    files: {},
    tls: false,
    nodes: [
      { host: "a", port: 7001 },
      { host: "b", port: 6379 },
      { host: "::1", port: 7003 },
    ],
  });
  expect(parseRedisUrl("rediss+cluster://me:p%40:ss@a")).toEqual({
    kind: "cluster",
    files: {},
    tls: true,
    username: "me",
    password: "p@:ss",
    nodes: [{ host: "a", port: 6379 }],
  });
});

test("parses Sentinel URLs with the name of the primary and a database", () => {
  expect(parseRedisUrl("redis+sentinel://:p@a,b:1/mymaster/3")).toEqual({
    kind: "sentinel",
    files: {},
    tls: false,
    password: "p",
    nodes: [
      { host: "a", port: 26379 },
      { host: "b", port: 1 },
    ],
    name: "mymaster",
    db: 3,
  });
});

test("takes the paths of credentials from parameters, and leaves others to the client", () => {
  expect(parseRedisUrl("rediss://a:1/2?ca=/ca.crt&family=6&cert=/c&key=/k")).toEqual({
    kind: "single",
    url: "rediss://a:1/2?family=6",
    files: { ca: "/ca.crt", cert: "/c", key: "/k" },
  });
  expect(
    parseRedisUrl("rediss+sentinel://a/m?passwordFile=/run/p&sentinelPasswordFile=/run/s"),
  ).toMatchObject({
    kind: "sentinel",
    tls: true,
    files: { passwordFile: "/run/p", sentinelPasswordFile: "/run/s" },
  });
});

test("a question mark in the password of nodes does not begin the parameters", () => {
  expect(parseRedisUrl("rediss+sentinel://:p?s=t@a/m?ca=/ca.crt")).toMatchObject({
    password: "p?s=t",
    name: "m",
    files: { ca: "/ca.crt" },
  });
  expect(parseRedisUrl("redis+cluster://:p?x@a")).toMatchObject({ password: "p?x", files: {} });
});

test.each([
  ["localhost", /use redis:/],
  ["http://a", /use redis:/],
  ["redis+cluster://", /use redis:/],
  ["redis+cluster://a:b", /use redis:/],
  ["redis+cluster://a:0", /use redis:/],
  ["redis+cluster://a,,b", /use redis:/],
  ["redis+cluster://a/1", /one database/],
  ["redis+sentinel://a", /name of the primary/],
  ["redis+sentinel://a/m/x", /name of the primary/],
  ["redis://:s3cret%@a", /%25/],
  ["redis://a?ca=/ca.crt", /use rediss/],
  ["rediss://a?cert=/tls.crt", /both parameters cert and key/],
  ["rediss://a?ca=", /must be the path of a file/],
  ["redis://a?sentinelPasswordFile=/p", /redis\+sentinel/],
  ["redis+cluster://a?user=x", /use redis:/],
])("the error for %s has the right form and not the URL", (url, fix) => {
  expect(() => parseRedisUrl(url)).toThrow(fix);
  expect(() => parseRedisUrl(url)).not.toThrow(/s3cret/);
});

test("P12: shown URLs contain no secret", () => {
  expect(showRedisUrl("redis+cluster://u:s3cret@a:1,b")).toBe("redis+cluster://a:1,b:6379");
  expect(showRedisUrl("rediss+sentinel://:s3cret@a/m")).toBe("rediss+sentinel://a:26379");
  expect(showRedisUrl("redis://u:s3cret@a:1?password=s3cret")).toBe("redis://a:1");
  expect(showRedisUrl("unix:///run/redis.sock?password=s3cret")).toBe("unix:///run/redis.sock");
  expect(showRedisUrl("s3cret")).toBe("its URL");
});
