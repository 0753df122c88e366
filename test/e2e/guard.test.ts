import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { guardListSchema, guardViewSchema } from "@konverge/contracts";
import type { ApiObject } from "@konverge/core";
import { createApiServer, type EmbeddedApiServer } from "@konverge/apiserver";
import { createGuard } from "@konverge/guard";
import { bindCluster } from "@konverge/queue";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";
import { until } from "../support/until.ts";
import { withoutHome } from "../support/without-home.ts";

const MAIN = ["--conditions=@konverge/source", "apps/cli/src/main.ts"];
const CONFIG = "apps/examples/src/node-pool.config.ts";
const WHY = "the control plane moves";

const harness = useQueues();
let folder: string;
let server: EmbeddedApiServer;
const audit = () => join(folder, "audit.jsonl");
const kubeconfig = () => join(folder, "kubeconfig");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "konverge-guard-"));
  server = await createApiServer({ auditLog: audit() });
  await writeFile(kubeconfig(), server.kubeconfig);
  const { code, stderr } = await konverge(["crds", "--apply", "--config", CONFIG]);
  if (code !== 0) throw new Error(stderr);
  await kube("POST", "api/v1/namespaces/default/configmaps", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "machine" },
    data: { image: "debian-13" },
  });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
});

const environment = (env: Readonly<Record<string, string>> = {}) => ({
  KONVERGE_REDIS_URL: harness.apiUrl,
  KONVERGE_PREFIX: harness.prefix,
  KONVERGE_METRICS_PORT: "0",
  KONVERGE_LEASE_DURATION: "3s",
  KUBECONFIG: kubeconfig(),
  ...env,
});

function startWorkerProcess(config: string) {
  const child = spawn(process.execPath, [...MAIN, "worker", "--config", config], {
    env: { ...process.env, ...environment() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  child.once("close", () => children.delete(child));
  return child;
}

const konverge = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  runCommand(args, environment(env));

async function startWorker(config = CONFIG) {
  const child = startWorkerProcess(config);
  child.stderr.resume();
  const said: string[] = [];
  const metricsUrl = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const fields = JSON.parse(line) as { readonly msg?: string; readonly metricsUrl?: string };
      said.push(fields.msg ?? "");
      if (fields.msg === "worker ready") resolve(fields.metricsUrl ?? "");
    });
    child.once("close", (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  return {
    /** The messages that it logged. */
    said,
    /** Suspends and continues the process. */
    suspend: () => child.kill("SIGSTOP"),
    resume: () => child.kill("SIGCONT"),
    /** The value of a series; 0 when there is none yet. */
    async metric(series: string): Promise<number> {
      const lines = withoutHome(await (await fetch(metricsUrl)).text()).split("\n");
      return Number(
        lines
          .find((line) => line.startsWith(`${series} `))
          ?.split(" ")
          .at(-1) ?? 0,
      );
    },
  };
}

/** Returns the requests of workers that the API server has finished. */
const workerCalls = () =>
  readFileSync(audit(), "utf8")
    .split("\n")
    .filter((line) => line.includes('"userAgent":"konverge-worker/')).length;

/** The guard of a cluster that no worker calls: its rate does not change. */
async function makeIdleGuard(cluster: string): Promise<void> {
  const place = { redis: harness.target, prefix: harness.prefix, cluster };
  const guard = await createGuard({ ...place, workerId: "starter" });
  await guard.close();
  await bindCluster({ ...place, uid: "of no server" });
}

/** Returns the guards as JSON and as a table, of one state: slow calls of a busy machine lower a rate at any time. */
async function listGuards() {
  const read = async () => {
    const { stdout } = await konverge(["guard", "list", "-o", "json"]);
    const { items } = guardListSchema.parse(JSON.parse(stdout));
    const rates = items.map(({ rate, workers }) => [Math.round(rate.current), workers]);
    return { items, state: JSON.stringify(rates) };
  };
  return await until("both lists show one state with a live worker", async () => {
    const before = await read();
    const { stdout: table } = await konverge(["guard", "list"]);
    const { items, state } = await read();
    const isLive = items.some(({ workers }) => workers.live.length === 1);
    return state === before.state && isLive && { items, table };
  });
}

const POOLS = "apis/demo.konverge.dev/v1/namespaces/default/nodepools";
const kube = async (method: string, path: string, body: unknown) => {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const response = await fetch(`${server.url}/${path}`, {
    method,
    headers: { "content-type": type },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
};
const machinesOf = (pool: string) =>
  server
    .objects("machines.demo.konverge.dev")
    .filter((machine) => (machine as unknown as ApiObject).metadata.name.startsWith(`${pool}-`))
    .length;
const makePool = (name: string) =>
  kube("POST", POOLS, {
    apiVersion: "demo.konverge.dev/v1",
    kind: "NodePool",
    metadata: { name },
    spec: { replicas: 1 },
  });
const keyOf = (name: string) => ({
  controller: "node-pool",
  cluster: "default",
  group: "demo.konverge.dev",
  resource: "nodepools",
  namespace: "default",
  name,
});

test("P6: isolate stops the calls of a running worker and defers its work until reset", async () => {
  const worker = await startWorker();
  await makePool("blue");
  await until("the first machine", () => machinesOf("blue") === 1);

  await makeIdleGuard("idle");
  const { items, table } = await listGuards();
  expect(items).toMatchObject([
    { cluster: "default", breaker: { state: "closed" } },
    { cluster: "idle", breaker: { state: "closed" }, rate: { current: 500 } },
  ]);
  const rate = Math.round(items[0]?.rate.current ?? 0);
  const rows = [`default +closed +${rate} +500 +1 +0 +none`, "idle +closed +500 +500 +0 +0 +none"];
  expect(table).toMatch(new RegExp(`^CLUSTER +BREAKER .*\n${rows.join("\n")}\n$`));

  const isolated = await konverge(["guard", "isolate", "default", "--by", "ada", "--reason", WHY]);
  expect(isolated).toMatchObject({ code: 0, stderr: "" });
  expect(isolated.stdout).toMatch(/\ndefault +isolated .*, by ada: the control plane moves\n$/);
  const state = (mode: string) => worker.metric(`konverge_guard_breaker_state{state="${mode}"}`);
  await until("the worker is isolated", async () => (await state("isolated")) === 1);
  // Watches stay open and do not count as calls in flight.
  await until(
    "calls in flight have ended",
    async () => (await worker.metric("konverge_guard_calls_in_flight")) === 0,
  );
  const before = workerCalls();
  const deferred = () => worker.metric("konverge_guard_deferred_calls_total");
  const deferredBefore = await deferred();
  const queue = harness.open();
  const attemptsBefore = await queue.listAttempts(keyOf("blue"));
  await kube("PATCH", `${POOLS}/blue`, { spec: { replicas: 3 } });
  await until("the change waits as a job", async () => {
    const { waiting, delayed } = await queue.counts();
    return waiting + delayed > 0;
  });
  await until("the worker deferred calls", async () => (await deferred()) >= deferredBefore + 2);
  expect(workerCalls()).toBe(before);
  expect(machinesOf("blue")).toBe(1);
  expect(await queue.getKey(keyOf("blue"))).toMatchObject({ failures: 0, conflicts: 0 });
  // An attempt may have started before the worker paused. It is deferred and does not count.
  const putOff = (await queue.listAttempts(keyOf("blue"))).slice(0, -attemptsBefore.length);
  expect(putOff.length).toBeLessThanOrEqual(1);
  expect(putOff.map(({ outcome }) => outcome)).toEqual(putOff.map(() => "deferred"));

  // Its calls change the rate.
  worker.suspend();
  const moved = ["--by", "ada", "--reason", "moved"];
  const reset = await konverge(["guard", "reset", "default", ...moved, "-o", "json"]);
  expect(guardViewSchema.parse(JSON.parse(reset.stdout))).toMatchObject({
    breaker: { state: "closed" },
    rate: { current: 100 },
    transitions: [
      { from: "isolated", to: "closed", by: "ada", operatorReason: "moved" },
      { from: "closed", to: "isolated", by: "ada", operatorReason: WHY },
    ],
  });
  worker.resume();
  await until("the waiting work is done", () => machinesOf("blue") === 3);
  const key = await until("the change is reconciled", async () => {
    const found = await queue.getKey(keyOf("blue"));
    return found?.phase === "idle" && found;
  });
  expect(key).toMatchObject({ failures: 0, lastOutcome: "done" });
  const attempts = await queue.listAttempts(keyOf("blue"));
  expect(
    attempts.map(({ record }) => (JSON.parse(record) as { readonly attempt: number }).attempt),
  ).toEqual(attempts.map(() => 1));
  const shown = await konverge(["guard", "show", "default"]);
  expect(shown.stdout).toMatch(/isolated -> closed, by ada: moved/);
});

const FAST = 200;
const SLOW = 20;
const BURST = 30;
/** Starts the same controller with limits that a few calls reach. */
async function writeSmallConfig(): Promise<string> {
  const path = join(folder, "small.config.mjs");
  const [cli, pool] = ["apps/cli/src/index.ts", "apps/examples/src/node-pool.ts"].map(
    (file) => pathToFileURL(file).href,
  );
  await writeFile(
    path,
    `import { defineConfig } from "${cli}";
     import { nodePool } from "${pool}";
     const clusters = { default: { rate: ${FAST}, burst: ${BURST} } };
     export default defineConfig({ controllers: [nodePool], clusters });`,
  );
  return path;
}

test("P5: set-rate limits a running worker until it is removed; --by defaults to the system user", async () => {
  const worker = await startWorker(await writeSmallConfig());
  await makePool("green");
  await until("the first machine", () => machinesOf("green") === 1);

  const set = ["guard", "set-rate", "default"];
  const before = workerCalls();
  const slow = await konverge([...set, String(SLOW), "--reason", WHY, "-o", "json"]);
  const orderedMs = performance.now();
  const early = workerCalls();
  expect(guardViewSchema.parse(JSON.parse(slow.stdout)).rate).toMatchObject({
    current: SLOW,
    override: { ratePerSecond: SLOW, by: expect.stringMatching(/\w/) as string, reason: WHY },
  });
  await kube("PATCH", `${POOLS}/green`, { spec: { replicas: 60 } });
  await until("all machines", () => machinesOf("green") === 60);
  const seconds = (performance.now() - orderedMs) / 1_000;
  // Calls in flight at the time of the action are not affected by it, nor are tokens, which are valid for 100 ms.
  const onItsWay = early - before + FAST * 0.1;
  expect(workerCalls() - early).toBeLessThanOrEqual(SLOW * seconds + BURST + onItsWay);
  expect(await worker.metric("konverge_guard_rate")).toBe(SLOW);

  const back = await konverge([...set, "configured", "--reason", WHY, "-o", "json"]);
  const { rate } = guardViewSchema.parse(JSON.parse(back.stdout));
  expect(rate.limits.ratePerSecond).toBe(FAST);
  expect(rate.override).toBeUndefined();
});

test("two workers with different limits for one cluster: the later limits apply, and both workers log it", async () => {
  const first = await startWorker(await writeSmallConfig());
  const second = await startWorker();
  await until("both have logged it", () =>
    [
      first.said.includes("guard limits updated by another worker"),
      second.said.includes("guard limits updated by this worker"),
    ].every(Boolean),
  );
  const shown = await konverge(["guard", "show", "default"]);
  expect(shown.stdout).toMatch(/\nlimits +500 calls\/s, burst 1000, /);
});

const ISOLATE = ["guard", "isolate", "default"];
const RATE = ["guard", "set-rate", "default"];
const REASON = ["--reason", WHY];
const NO_GUARD = /(no guard found for|has no limits yet).*; run .*guard list. for the names/;
const NO_RATE = /'rate'.* 0.001 to 100000 calls per second .*; or use "configured"/;
test.each([
  ["no guard yet", [...ISOLATE, ...REASON], NO_GUARD, 3],
  ["an unknown cluster", ["guard", "show", "nobody"], NO_GUARD, 3],
  ["no reason", ISOLATE, /--reason/, 2],
  ["an empty reason", [...ISOLATE, "--reason", " "], /--reason: must have 1 to 200/, 2],
  ["nobody", [...ISOLATE, ...REASON, "--by", ""], /--by: must have 1 to 200/, 2],
  ["no cluster", ["guard", "show"], /'cluster'/, 2],
  ["an unknown format", ["guard", "list", "-o", "xml"], /--output.*table, json/, 2],
  ["a rate of 0", [...RATE, "0", ...REASON], NO_RATE, 2],
  ["a negative rate", [...RATE, "-5", ...REASON], NO_RATE, 2],
  ["NaN", [...RATE, "NaN", ...REASON], NO_RATE, 2],
  ["a huge rate", [...RATE, "1e9", ...REASON], NO_RATE, 2],
  ["no rate at all", [...RATE, "", ...REASON], NO_RATE, 2],
])("%s is reported in one line with a fix", async (_what, args, operatorReason, code) => {
  const ended = await konverge(args);
  expect(ended.stderr).toMatch(operatorReason);
  expect(ended.stderr).toMatch(/^.+\n$/);
  expect(ended).toMatchObject({ code, stdout: "" });
});

test.each([
  ["away", "redis://ada:s3cret@127.0.0.1:1?password=s3cret", 6, "Redis at redis://127.0.0.1:1 "],
  ["no URL", "s3cret", 2, "KONVERGE_REDIS_URL: use redis://"],
  [
    "a URL with a bare %",
    "redis://:s3cret%@127.0.0.1:1",
    2,
    "KONVERGE_REDIS_URL: encode a literal %",
  ],
])(
  "P12: reports Redis %s in one line without secrets",
  async (_what, url, code, operatorReason) => {
    for (const args of [["list"], ["show", "default"], [...ISOLATE.slice(1), ...REASON]]) {
      const ended = await konverge(["guard", ...args], { KONVERGE_REDIS_URL: url });
      expect(ended).toMatchObject({ code, stdout: "" });
      expect(ended.stderr).toMatch(/^konverge: .+\n$/);
      expect(ended.stderr).toContain(operatorReason);
      expect(ended.stderr).not.toContain("s3cret");
    }
  },
);

test("prints an empty list without guards; --help lists actions, variables and exit codes", async () => {
  expect(JSON.parse((await konverge(["guard", "list", "-o", "json"])).stdout)).toEqual({
    items: [],
  });
  const { code, stdout } = await konverge(["guard", "--help"]);
  expect(code).toBe(0);
  for (const word of ["isolate", "set-rate", "KONVERGE_REDIS_URL", "--reason", "Exit codes"]) {
    expect(stdout).toContain(word);
  }
});

const WRONG = `{
  default: { rate: 0, burst: 1.5, minRate: NaN, maxInFlight: -1 },
  huge: { rate: 1e9 },
  negative: { rate: -5 },
  small: { rate: 1000, burst: 100 },
}`;
test.each([
  [
    "defineConfig",
    `import { defineConfig } from "${pathToFileURL("apps/cli/src/index.ts").href}";
     export default defineConfig({ controllers: [{ name: "a" }], clusters: ${WRONG} });`,
  ],
  ["a plain object", `export default { controllers: [], settings: {}, clusters: ${WRONG} };`],
])("reports all invalid limits in %s at worker startup", async (_what, text) => {
  const path = join(folder, "wrong.config.mjs");
  await writeFile(path, text);
  const child = startWorkerProcess(path);
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = await once(child, "close");
  const lines = stderr.split("\n").map((line) => line.trim());
  for (const [name, fix] of [
    ["default.rate", "must be 0.001 to 100000 calls per second (got 0)"],
    ["default.minRate", "must be 0.001 to 100000 calls per second (got NaN)"],
    ["default.burst", "must be an integer"],
    ["default.maxInFlight", "must be an integer from 1"],
    ["huge.rate", "(got 1000000000)"],
    ["negative.rate", "(got -5)"],
    ["small.burst", "must be at least 102"],
  ] as const) {
    expect(lines.find((line) => line.startsWith(`clusters.${name}: `))).toContain(fix);
  }
  expect(lines.filter((line) => line.startsWith("clusters."))).toHaveLength(7);
  expect(code).toBe(2);
});
