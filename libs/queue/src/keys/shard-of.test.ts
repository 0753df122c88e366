import { expect, test } from "vitest";
import { findShardsIssue, shardOf } from "./shard-of.ts";

test("the shard of a key is stable across versions", () => {
  // Published FNV-1a test vectors, modulo a large prime and 4.
  expect(shardOf("", 4_294_967_291)).toBe(0x811c9dc5);
  expect(shardOf("a", 4_294_967_291)).toBe(0xe40c292c);
  expect(shardOf("foobar", 4_294_967_291)).toBe(0xbf9cf968);
  expect(shardOf("foobar", 4)).toBe(0);
});

test("distributes keys that differ in one digit evenly", () => {
  const counts = [0, 0, 0, 0];
  for (let n = 0; n < 10_000; n += 1) {
    const shard = shardOf(`node-pool/default/nodepools.demo.konverge.dev/demo/pool-${n}`, 4);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  for (const count of counts) expect(Math.abs(count - 2_500)).toBeLessThan(250);
});

test.each([0, -1, 1.5, 65, NaN, "4", null])(
  "rejects %j shards and names the valid range",
  (shards) => {
    expect(findShardsIssue(shards)).toMatch(/integer from 1 to 64/);
  },
);
