import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { isAlive } from "../../infra/host/lock.js";

test("a guarded process may end in its own time, and its folder is removed last", async () => {
  const folder = mkdtempSync(join(tmpdir(), "konverge-test-"));
  const proof = join(mkdtempSync(join(tmpdir(), "konverge-test-")), "ended-in-order");
  onTestFinished(() => {
    for (const path of [folder, join(proof, "..")]) rmSync(path, { recursive: true, force: true });
  });
  const quick = await run('console.log("up"); setInterval(() => {}, 1e9)');
  // Still writes into the folder while it ends, longer than the quick one lives.
  const slow = await run(`
    process.once("SIGTERM", () => setTimeout(() => {
      fs.writeFileSync(${JSON.stringify(join(folder, "late"))}, "");
      fs.writeFileSync(${JSON.stringify(proof)}, "");
      process.exit();
    }, 1_000));
    console.log("up");
    setInterval(() => {}, 1e9);`);
  const pids = [quick.pid, slow.pid];
  const parent = await run(`
    import(${JSON.stringify(import.meta.resolve("../../infra/host/guardian.js"))}).then(({ guard }) => {
      guard({ pids: ${JSON.stringify(pids)}, folder: ${JSON.stringify(folder)} });
      console.log("up");
    });
    setInterval(() => {}, 1e9);`);
  parent.kill("SIGKILL");
  await vi.waitFor(() => expect(existsSync(folder)).toBe(false), {
    timeout: 300_000,
    interval: 50,
  });
  expect(existsSync(proof)).toBe(true);
  expect(pids.filter((pid) => pid === undefined || isAlive(pid))).toEqual([]);
});

/** Runs a script until it prints that it is up. */
async function run(script: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}
