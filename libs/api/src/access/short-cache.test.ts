import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { ShortCache } from "./short-cache.ts";

test("concurrent and later reads of a key share one call", async () => {
  const cache = new ShortCache<number>({ keptMs: 60_000, most: 10 });
  let calls = 0;
  const read = async () => ++calls;
  const all = await Promise.all(Array.from({ length: 50 }, () => cache.get("a", read)));
  expect([...all, await cache.get("a", read)]).toEqual(Array(51).fill(1));
  expect(await cache.get("b", read)).toBe(2);
});

test("a result is read again after its time, and a failure at once", async () => {
  const cache = new ShortCache<number>({ keptMs: 1, most: 10 });
  await cache.get("a", async () => 1);
  await wait(5);
  expect(await cache.get("a", async () => 2)).toBe(2);
  const failing = new ShortCache<number>({ keptMs: 60_000, most: 10 });
  await expect(failing.get("a", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await failing.get("a", async () => 3)).toBe(3);
});

test("keeps a limited number of results", async () => {
  const cache = new ShortCache<number>({ keptMs: 60_000, most: 100 });
  for (let n = 0; n < 1_000; n++) await cache.get(String(n), async () => n);
  expect(cache.size).toBe(100);
  expect(await cache.get("999", async () => -1)).toBe(999);
});
