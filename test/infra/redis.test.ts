import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { checkRedisUrl, obtainRedis, RedisUnavailable, startRedis } from "@konverge/infra-redis";
import { isAlive } from "../../infra/host/lock.js";
import { ask } from "../../infra/redis/resp.js";

test("a started Redis keeps acknowledged writes and evicts nothing", async () => {
  await using redis = await startRedis();
  const [aof, policy] = await ask(redis.url, [
    ["INFO", "persistence"],
    ["INFO", "memory"],
  ]);
  expect(aof).toContain("aof_enabled:1\r\n");
  expect(policy).toContain("maxmemory_policy:noeviction\r\n");
});

test("stop() removes the process and its data directory", async () => {
  const redis = await startRedis();
  await redis.stop();
  expect(isAlive(redis.pid)).toBe(false);
  expect(existsSync(redis.dir)).toBe(false);
});

test("keeps the caller's folder after a crash and restores its data", async () => {
  const dir = mkdtempSync(join(tmpdir(), "konverge-test-"));
  try {
    const first = await startRedis({ dir, extraArgs: ["--appendfsync", "always"] });
    await ask(first.url, [["SET", "a", "1"]]);
    await first.kill();
    await using second = await startRedis({ dir });
    expect(await ask(second.url, [["GET", "a"]])).toEqual(["1"]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("a port in use is an error, even if a Redis responds there", async () => {
  await using redis = await startRedis();
  await expect(startRedis({ port: redis.port })).rejects.toThrow(/already in use/i);
});

test("removes only the keys of a prefix from an external Redis, in the database of the URL", async () => {
  await using redis = await startRedis();
  const many = Array.from({ length: 3_000 }, (_, n) => ["SET", `a*b:${n}`, "1"]);
  const kept = ["axb:1", "a*b", "x:a*b:1"];
  const database = ["SELECT", "3"];
  await ask(redis.url, [["SET", "a*b:0", "1"]]);
  await ask(redis.url, [database, ...many, ...kept.map((key) => ["SET", key, "1"])]);
  const theirs = await obtainRedis({
    log: () => undefined,
    env: { REDIS_URL: `${redis.url}/3` },
  });
  await theirs.removeKeys("a*b");
  const [, there, left] = await ask(redis.url, [database, ["DBSIZE"], ["EXISTS", ...kept]]);
  expect([there, left]).toEqual(["3", "3"]);
  expect(await ask(redis.url, [["EXISTS", "a*b:0"]])).toEqual(["1"]);
});

test("a Redis ends with a killed parent process", async () => {
  const script = `
    const { startRedis } = await import(${JSON.stringify(import.meta.resolve("@konverge/infra-redis"))});
    const { pid, dir } = await startRedis();
    console.log(JSON.stringify({ pid, dir }));`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(parent.stdout, "data");
  const { dir, pid }: { dir: string; pid: number } = JSON.parse(String(line));
  expect(isAlive(pid)).toBe(true);
  parent.kill("SIGKILL");
  // The folder is removed last, after the process.
  await vi.waitFor(() => expect(existsSync(dir)).toBe(false), { timeout: 300_000, interval: 50 });
});

test("uses REDIS_URL unchanged and leaves it running", async () => {
  await using redis = await startRedis({ extraArgs: ["--maxmemory-policy", "allkeys-lru"] });
  const lines: string[] = [];
  const obtained = await obtainRedis({
    log: (line) => lines.push(line),
    env: { REDIS_URL: redis.url },
  });
  expect(obtained).toMatchObject({ url: redis.url, version: redis.version, owned: false });
  expect(lines.join()).toContain("noeviction");
  await obtained.stop();
  expect(await ask(redis.url, [["PING"]])).toEqual(["PONG"]);
});

test("reports an address without a Redis, without its password", async () => {
  const error = await checkRedisUrl("redis://u:secret@127.0.0.1:1").catch(
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(RedisUnavailable);
  expect(String(error)).toMatch(/REDIS_URL=redis:\/\/127\.0\.0\.1:1 does not respond/);
  expect(String(error)).not.toContain("secret");
});
