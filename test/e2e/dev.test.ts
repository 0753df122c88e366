import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Greeting } from "../../apps/cli/templates/project/src/greeting.ts";
import { until } from "../support/until.ts";

const redisUrl = process.env["REDIS_URL"] ?? "";
const MAIN = resolve("apps/cli/src/main.ts");

/** Returns the process IDs of all descendants. */
function descendants(pid: number): number[] {
  const rows = execFileSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((row) => row.trim().split(/\s+/).map(Number));
  const of = (parent: number): number[] =>
    rows.flatMap(([child = 0, ppid]) => (ppid === parent ? [child, ...of(child)] : []));
  return of(pid);
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function devKeys(): Promise<string[]> {
  const redis = new Redis(redisUrl);
  const keys = await redis.keys("konverge-dev-*");
  await redis.quit();
  return keys;
}

test("konverge dev replaces the worker on save, keeps it on errors, and cleans up on Ctrl-C", async () => {
  await using cleanup = new AsyncDisposableStack();
  // Inside the checkout, where its imports resolve.
  const folder = mkdtempSync(join(import.meta.dirname, "dev-project-"));
  cleanup.defer(() => rmSync(folder, { recursive: true }));
  cpSync("apps/cli/templates/project", folder, { recursive: true });
  // `konverge dev` must ignore the cluster that file and environment name.
  const config = join(folder, "konverge.config.ts");
  const elsewhere = "clusters: { default: { kubeconfig: '/dev/null/none', context: 'none' } }, ";
  writeFileSync(config, readFileSync(config, "utf8").replace("({ ", `({ ${elsewhere}`));
  const env = { ...process.env, KONVERGE_KUBECONFIG: "/dev/null/none", KONVERGE_CONTEXT: "none" };
  const before = await devKeys();
  const dev = spawn(
    process.execPath,
    ["--conditions=@konverge/source", MAIN, "dev", "--port", "0"],
    { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] },
  );
  cleanup.defer(() => void dev.kill("SIGKILL"));
  const ended = new Promise<number | null>((done) => dev.once("close", done));
  let said = "";
  for (const stream of [dev.stdout, dev.stderr]) {
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  }
  /** Waits for a line after the previously matched one. */
  let readTo = 0;
  const hear = async (pattern: RegExp): Promise<string> =>
    until(`a line matches ${String(pattern)} after:\n${said}`, () => {
      if (dev.exitCode !== null) throw new Error(said);
      const found = pattern.exec(said.slice(readTo));
      if (found === null) return undefined;
      readTo += found.index + found[0].length;
      return found[1] ?? found[0];
    });

  const kubeconfigPath = await hear(/export KUBECONFIG=(\S+)/);
  const url = await hear(/Dashboard {3}(\S+)/);
  await hear(/worker ready after \d+ ms\n/);
  expect((await fetch(url)).headers.get("content-type")).toContain("text/");
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "konverge-test/1",
  });
  cleanup.defer(() => client.close());
  const greet = (name: string) =>
    client.create(Greeting, { metadata: { namespace: "default", name }, spec: { name } });
  const reads = (name: string, text: string) =>
    until(`${name} reads ${text}`, async () => {
      const { status } = await client.get(Greeting, { namespace: "default", name });
      return status?.text === text;
    });
  await greet("world");
  await reads("world", "Hello, world!");

  const file = join(folder, "src/greeter.ts");
  const good = readFileSync(file, "utf8");
  writeFileSync(file, `${good}\nsyntax error(`);
  await hear(/src\/greeter\.ts changed/);
  await hear(/cannot be loaded: .*greeter\.ts:\d+\)/);
  await hear(/previous worker keeps running/);
  await greet("moon");
  await reads("moon", "Hello, moon!");

  writeFileSync(file, good.replace("}!`", "}?`"));
  await hear(/worker ready after \d+ ms, previous worker drained/);
  // The new version reconciles the old one's last object on its initial resync.
  await reads("world", "Hello, world?");

  const children = descendants(dev.pid ?? 0);
  expect(children.length).toBeGreaterThanOrEqual(3);
  dev.kill("SIGINT");
  expect(await ended, said).toBe(0);
  expect(said).toMatch(/stopped\n$/);
  await until("all of its processes have exited", () => !children.some(isAlive));
  expect(existsSync(kubeconfigPath)).toBe(false);
  expect(await devKeys()).toEqual(before);
});

test("konverge dev reports a missing configuration and starts nothing", async () => {
  const args = ["--conditions=@konverge/source", MAIN, "dev", "--config", "no-such.config.ts"];
  const dev = spawn(process.execPath, args);
  let said = "";
  dev.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise<number | null>((done) => dev.once("close", done));
  expect(said).toMatch(/^konverge: --config no-such\.config\.ts cannot be read/);
  expect(code).toBe(2);
});
