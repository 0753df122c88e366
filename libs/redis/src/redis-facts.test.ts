import { expect, test } from "vitest";
import { judgeLatency, judgeRedis } from "./redis-facts.ts";

const info = (version: string, policy = "noeviction", aof = 1) =>
  `# Server\r\nredis_version:${version}\r\nmaxmemory_policy:${policy}\r\naof_enabled:${aof}\r\nredis_mode:standalone\r\nrun_id:a\r\n`;

test.each(["6.2.0", "7.0.15", "8.2.1", "10.0.0"])("accepts %s", (version) => {
  expect(judgeRedis(info(version))).toEqual({ version, warnings: [] });
});

test.each(["6.0.16", "5.0.7"])("rejects %s, because ZADD LT is missing", (version) => {
  expect(() => judgeRedis(info(version))).toThrow(/6\.2 or later is required/);
});

// Valkey 9 reports server_mode.
test.each(["redis_mode", "server_mode"])("rejects a cluster node by its %s", (field) => {
  const node = info("7.0.0").replace("redis_mode:standalone", `${field}:cluster`);
  expect(() => judgeRedis(node)).toThrow(/redis\+cluster:\/\//);
  expect(judgeRedis(node, true).warnings).toEqual([]);
});

test("rejects eviction, and warns without AOF", () => {
  expect(() => judgeRedis(info("7.0.0", "volatile-lru"))).toThrow(/volatile-lru/);
  expect(judgeRedis(info("7.0.0", "noeviction", 0)).warnings).toHaveLength(1);
});

test("a fact that the server does not report is unknown, and a warning", () => {
  const trimmed = "redis_version:7.1.0\r\n";
  expect(judgeRedis(trimmed).warnings).toEqual([
    expect.stringContaining("does not report maxmemory-policy"),
    expect.stringContaining("does not report redis_mode"),
    expect.stringContaining("does not report aof_enabled"),
    expect.stringContaining("does not report run_id and master_replid"),
  ]);
});

test.each([
  { aheadMs: 3_600_000, warnings: [expect.stringContaining("3600 s ahead of Redis")] },
  { aheadMs: -5_000, warnings: [expect.stringContaining("5 s behind Redis")] },
  { aheadMs: 1_500, warnings: [] },
])("judges a clock that is ahead of Redis by $aheadMs ms", ({ aheadMs, warnings }) => {
  const redisMs = 1_795_261_670_086;
  const reported = `${info("7.0.0")}server_time_usec:${redisMs}387\r\n`;
  expect(judgeRedis(reported, false, redisMs + aheadMs).warnings).toEqual(warnings);
});

const MIB = 2 ** 20;
test.each([
  { fields: `used_memory:${50 * MIB}\r\nmaxmemory:${100 * MIB}`, warnings: [] },
  { fields: `used_memory:${50 * MIB}\r\nmaxmemory:0`, warnings: [] },
  {
    fields: `used_memory:${90 * MIB}\r\nmaxmemory:${100 * MIB}`,
    warnings: [expect.stringContaining("90 of 100 MiB used: a full Redis rejects requests")],
  },
  { fields: "connected_slaves:0\r\nmaster_repl_offset:9", warnings: [] },
  {
    fields: "connected_slaves:1\r\nslave0:ip=h,offset=5,lag=0\r\nmaster_repl_offset:9",
    warnings: [],
  },
  {
    fields: `connected_slaves:2\r\nslave0:ip=h,offset=5,lag=0\r\nslave1:ip=i,offset=${30 * MIB},lag=0\r\nmaster_repl_offset:${30 * MIB}`,
    warnings: [expect.stringContaining("a failover would lose these writes")],
  },
])("judges memory and replicas: $fields", ({ fields, warnings }) => {
  expect(judgeRedis(`${info("7.0.0")}${fields}\r\n`).warnings).toEqual(warnings);
});

test("warns about a Redis that answers slowly", () => {
  expect(judgeLatency(0.42)).toEqual({
    check: "latency",
    level: "ok",
    detail: "answers within 0.4 ms",
  });
  expect(judgeLatency(45)).toMatchObject({
    level: "warn",
    detail: expect.stringContaining("45.0 ms at best: ") as string,
  });
});
