import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createLocalGate } from "@konverge/core";
import { createApiServer, startRedis } from "@konverge/apiserver";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { CustomResourceDefinition, Lease } from "@konverge/kube/kinds";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Greeting } from "../../apps/cli/templates/project/src/greeting.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

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

async function devKeys(redisUrl: string): Promise<string[]> {
  const redis = new Redis(redisUrl);
  const keys = await redis.keys("konverge-dev-*");
  await redis.quit();
  return keys;
}

interface DevProcess {
  readonly pid: number;
  /** All output. */
  readonly said: () => string;
  /** Waits for a line after the previously matched one, and returns its first group. */
  readonly hear: (pattern: RegExp) => Promise<string>;
  /** Sends SIGINT and returns the exit code. */
  readonly interrupt: () => Promise<number | null>;
}

function startDev(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): DevProcess & Disposable {
  const dev = spawn(
    process.execPath,
    ["--conditions=@konverge/source", MAIN, "dev", "--port", "0", ...args],
    { cwd: folder, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const ended = new Promise<number | null>((done) => dev.once("close", done));
  let said = "";
  for (const stream of [dev.stdout, dev.stderr]) {
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  }
  let readTo = 0;
  return {
    pid: dev.pid ?? 0,
    said: () => said,
    hear: async (pattern) =>
      until(`a line matches ${String(pattern)} after:\n${said}`, () => {
        if (dev.exitCode !== null) throw new Error(said);
        const found = pattern.exec(said.slice(readTo));
        if (found === null) return undefined;
        readTo += found.index + found[0].length;
        return found[1] ?? found[0];
      }),
    async interrupt() {
      dev.kill("SIGINT");
      return await ended;
    },
    [Symbol.dispose]: () => void dev.kill("SIGKILL"),
  };
}

/** A new project inside the checkout, where its imports resolve. */
function makeProject(): { readonly folder: string } & Disposable {
  const folder = mkdtempSync(join(import.meta.dirname, "dev-project-"));
  cpSync("apps/cli/templates/project", folder, { recursive: true });
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

test("konverge dev replaces the worker on save, keeps it on errors, and cleans up on Ctrl-C", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { folder } = cleanup.use(makeProject());
  // `konverge dev` must ignore the cluster that file and environment name.
  const config = join(folder, "konverge.config.ts");
  const elsewhere = "clusters: { default: { kubeconfig: '/dev/null/none', context: 'none' } }, ";
  writeFileSync(config, readFileSync(config, "utf8").replace("({ ", `({ ${elsewhere}`));
  // Other tests run `konverge dev` on the shared Redis at the same time.
  const redis = await startRedis();
  cleanup.defer(() => redis.stop());
  const env = {
    REDIS_URL: redis.url,
    KONVERGE_KUBECONFIG: "/dev/null/none",
    KONVERGE_CONTEXT: "none",
  };
  const dev = cleanup.use(startDev(folder, [], env));
  const { hear } = dev;

  const url = await hear(/Dashboard {3}(\S+)/);
  const kubeconfigPath = await hear(/export KUBECONFIG=(\S+)/);
  const apiUrl = await hear(/KONVERGE_SERVER=(\S+)/);
  await hear(/worker ready after \d+ ms\n/);
  const inShell = { KUBECONFIG: kubeconfigPath, KONVERGE_SERVER: apiUrl };
  const asked = await runCommand(["doctor"], inShell);
  expect(asked, asked.stdout + asked.stderr).toMatchObject({ code: 0 });
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

  // The types are wrong, but the file can be loaded.
  writeFileSync(file, `${readFileSync(file, "utf8")}\nexport const wrong: number = "text";\n`);
  await hear(/type error: src\/greeter\.ts\(\d+,\d+\): error TS2322/);

  const throwing = good.replace(
    "const text =",
    'if (name === "mars") explode();\n    const text =',
  );
  writeFileSync(
    file,
    `${throwing}\nfunction explode(): never {\n  throw new TypeError("no");\n}\n`,
  );
  await hear(/worker ready after \d+ ms, previous worker drained/);
  await greet("mars");
  const place = String.raw`at explode \(\/.*\/src\/greeter\.ts:\d+:\d+\)\n`;
  await hear(new RegExp(`reconcile failed .*: no\n +${place}`));
  const history = ["object", "history", "greeter", "mars", "-n", "default", "--attempt", "1"];
  expect((await runCommand(history, inShell)).stdout).toMatch(
    new RegExp(`TypeError: no\n +${place}`),
  );

  const children = descendants(dev.pid);
  expect(children.length).toBeGreaterThanOrEqual(3);
  expect(await dev.interrupt(), dev.said()).toBe(0);
  expect(dev.said()).toMatch(/stopped\n$/);
  expect(dev.said(), "old and new workers overlap for a moment").not.toContain("versions differ");
  await until("all of its processes have exited", () => !children.some(isAlive));
  expect(existsSync(kubeconfigPath)).toBe(false);
  expect(await devKeys(redis.url)).toEqual([]);
});

test("konverge dev uses the cluster of the kubeconfig only if confirmed and not used by other workers", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { folder } = cleanup.use(makeProject());
  const server = await createApiServer();
  cleanup.defer(() => server.close());
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, server.kubeconfig);
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "konverge-test/1",
  });
  cleanup.defer(() => client.close());
  const shared = ["--cluster", "kubeconfig", "--kubeconfig", kubeconfig];
  const config = join(folder, "konverge.config.ts");

  await expect(runCommand(["dev", "--config", config, ...shared], {})).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(/would run the controllers on context .* add --yes/) as string,
  });

  const target = { namespace: "default", name: "konverge-greeter" };
  await client.create(Lease, {
    metadata: target,
    spec: {
      holderIdentity: "operator-5d9f-abcde-1",
      renewTime: new Date().toISOString().replace("Z", "000Z"),
      leaseDurationSeconds: 3_600,
    },
  });
  const dev = cleanup.use(startDev(folder, [...shared, "--yes"], {}));
  await dev.hear(
    /controller "greeter" already runs in this cluster: operator-5d9f-abcde-1 holds the Lease default\/konverge-greeter/,
  );
  await dev.hear(/no worker running; save a file to retry/);
  expect((await client.list(CustomResourceDefinition)).items, "nothing was applied").toEqual([]);

  await client.delete(Lease, target);
  writeFileSync(config, `${readFileSync(config, "utf8")}\n`);
  await dev.hear(/worker ready after \d+ ms/);
  const leases = async () => (await client.list(Lease)).items.map(({ metadata }) => metadata.name);
  await until("it leads", async () =>
    (await leases()).some((name) => /^konverge-dev-.*-greeter$/.test(name)),
  );
  expect(await dev.interrupt(), dev.said()).toBe(0);
  expect(await leases(), "only the objects of the controllers stay").toEqual([]);
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
