import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "../../infra/host/lock.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-lock-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("two holders never overlap", async () => {
  let inside = 0;
  let most = 0;
  const waits: string[] = [];
  const work = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((resolve) => setImmediate(resolve));
    inside -= 1;
  };
  const onWait = (owner: string) => waits.push(owner);
  await Promise.all([1, 2, 3].map(() => withLock(join(folder, "l"), { onWait }, work)));
  expect(most).toBe(1);
  expect(waits).toEqual([`process ${process.pid}`, `process ${process.pid}`]);
});

test("takes over the lock of a dead process", async () => {
  const path = join(folder, "l");
  const { pid } = spawnSync("true");
  mkdirSync(path);
  writeFileSync(join(path, "owner.json"), JSON.stringify({ pid, host: hostname() }));
  expect(await withLock(path, {}, () => "done")).toBe("done");
});

test("releases the lock on failure", async () => {
  const path = join(folder, "l");
  const failing = withLock(path, {}, () => Promise.reject(new Error("no")));
  await expect(failing).rejects.toThrow("no");
  expect(existsSync(path)).toBe(false);
});
