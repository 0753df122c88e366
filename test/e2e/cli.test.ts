import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startApi, type RunningApi } from "@konverge/api";
import { createClient, type Client } from "@konverge/client";
import { readSettings } from "@konverge/contracts";
import { createControllerRegistry, createWorkQueue, type WorkQueue } from "@konverge/queue";
import { createApiServer, type EmbeddedApiServer } from "@konverge/apiserver";
import { Redis } from "ioredis";
import { load, loadAll } from "js-yaml";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loggedRecord } from "../integration/queue/logged-record.ts";
import { workOn, type TestWorker } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";
import { until } from "../support/until.ts";

const REDIS_URL = process.env["REDIS_URL"] ?? "";
const PREFIX = `test-cli-${process.pid}`;
const TOKEN = "a-token-of-the-test-0123456789abcdef";
const CONFIG = "apps/examples/src/node-pool.config.ts";
const BLUE = ["node-pool", "blue", "-n", "default"];
const WHY = ["--reason", "a test", "--by", "ada"];

let folder: string;
let server: EmbeddedApiServer;
let api: RunningApi;
let worker: ChildProcess;
let fragile: WorkQueue;
let fragileWorker: TestWorker;
let client: Client;
let requestId: string;

const local = () => ({
  KONVERGE_REDIS_URL: REDIS_URL,
  KONVERGE_PREFIX: PREFIX,
  KONVERGE_METRICS_PORT: "0",
  KUBECONFIG: join(folder, "kubeconfig"),
});
const remote = () => ({
  ...local(),
  // Only the server may be called.
  KONVERGE_REDIS_URL: "redis://127.0.0.1:1",
  KONVERGE_SERVER: api.url,
  KONVERGE_TOKEN: TOKEN,
});
const run = (args: readonly string[], env = remote()) => runCommand(args, env);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "konverge-cli-"));
  server = await createApiServer();
  await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
  api = await startApi({
    settings: readSettings({
      env: {
        KONVERGE_REDIS_URL: REDIS_URL,
        KONVERGE_PREFIX: PREFIX,
        KONVERGE_API_PORT: "0",
        KONVERGE_TOKEN: TOKEN,
        KONVERGE_LOG_LEVEL: "silent",
      },
    }),
    version: "test",
  });
  client = createClient({ server: api.url, token: TOKEN });
  const applied = await run(["crds", "--apply", "--config", CONFIG], { ...remote(), ...local() });
  if (applied.code !== 0) throw new Error(applied.stderr);
  worker = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "apps/cli/src/main.ts", "worker", "--config", CONFIG],
    { env: { ...process.env, ...local() }, stdio: ["ignore", "pipe", "inherit"] },
  );
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: worker.stdout ?? process.stdin }).on("line", (line) => {
      if ((JSON.parse(line) as { readonly msg?: string }).msg === "worker ready") resolve();
    });
    worker.once("close", (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  await breakSomething();
  const created = await fetch(
    `${server.url}/apis/demo.konverge.dev/v1/namespaces/default/nodepools`,
    {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        apiVersion: "demo.konverge.dev/v1",
        kind: "NodePool",
        metadata: { name: "blue" },
        spec: { replicas: 1 },
      }),
    },
  );
  if (!created.ok) throw new Error(await created.text());
  const target = { controller: "node-pool", namespace: "default", name: "blue" };
  await until("its attempts are recorded", async () => {
    const found = await client.objects.get(target).catch(() => undefined);
    const searched = await client.attempts.list({ controller: "node-pool" }).page();
    return searched.items.length > 0 && found?.attempts.some(({ writes }) => writes.length > 0);
  });
  requestId = (await client.reconciles.create(target)).id;
  await client.reconciles.wait(requestId);
});

/** Creates a controller with dead-lettered objects and a pause, for the lists that show them. */
async function breakSomething(): Promise<void> {
  const common = { redis: { url: REDIS_URL }, cluster: "default", prefix: PREFIX };
  const registry = createControllerRegistry(common);
  const type = { cluster: "default", group: "demo.konverge.dev", version: "v1", kind: "Fragile" };
  await registry.announce([
    { ...type, name: "fragile", resource: "fragiles", scope: "Namespaced" },
  ]);
  await registry.close();
  fragile = createWorkQueue({ ...common, controller: "fragile" });
  fragileWorker = workOn(fragile, ({ epoch }) => ({
    outcome: { kind: "terminal", error: new Error("it broke") },
    record: loggedRecord(epoch, ["opening the box"]),
  }));
  const target = { controller: "fragile", namespace: "demo", name: "vase" };
  await client.reconciles.create(target);
  await until("it broke", () => fragileWorker.closed.length > 0);
  await client.objects.pause({ ...target, name: "glass" }, { by: "ada", reason: "a test" });
}

afterAll(async () => {
  const ended = new Promise((resolve) => worker.once("close", resolve));
  worker.kill("SIGTERM");
  await ended;
  await fragileWorker.stop();
  await fragile.close();
  await api.stop();
  await server.close();
  await rm(folder, { recursive: true, force: true });
  const redis = new Redis(REDIS_URL);
  for await (const keys of redis.scanStream({ match: `${PREFIX}:*`, count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(...(keys as string[]));
  }
  await redis.quit();
});

const SHOWN: readonly (readonly [args: readonly string[], head: RegExp, name: RegExp])[] = [
  [["reconcile", "enqueue", ...BLUE], /^node-pool\/default\/.*@\d+\n$/, /blue@\d+/],
  [["reconcile", "enqueue", ...BLUE, "--wait"], /^PHASE +OUTCOME.*\nfinished +done/, /blue@\d+/],
  [["reconcile", "enqueue", ...BLUE, "--dry-run"], /^would enqueue 1 object\n$/, /^blue$/m],
  [["reconcile", "get", "ID"], /^PHASE +OUTCOME.*\nfinished +done/, /blue@\d+/],
  [
    ["reconcile", "list", "--phase", "deadLettered"],
    /^CONTROLLER +NAMESPACE +NAME.*\nfragile/,
    /vase/,
  ],
  [["object", "list"], /\nnode-pool +default +blue +idle/, /demo\/vase/],
  [["object", "get", ...BLUE], /^key +node-pool\/.*\nphase +idle/, /\/blue$/m],
  [["object", "history", ...BLUE], /^ATTEMPT +STARTED.*\n\d+ +\d+m?s +\w+/, /blue#\d+/],
  [["object", "history", ...BLUE, "--attempt", "1"], /^attempt +node-pool.*#1\n/, /blue#1$/m],
  [["object", "diff", ...BLUE, "--attempt", "1"], /^attempt 1, .*\n(create|patch) /, /machines/],
  [
    ["object", "logs", "fragile", "vase", "-n", "demo"],
    /^TIME +ATTEMPT +LEVEL +MESSAGE\n2026\S+ +1 +info +opening the box/,
    /^opening the box$/m,
  ],
  [["object", "blame", ...BLUE], /^FIELD +MANAGER.*\n.*konverge\/node-pool/s, /^spec.replicas$/m],
  [["attempt", "list"], /^STARTED +CONTROLLER.*\n.*node-pool +default\/blue/s, /blue#\d+/],
  [["contention", "list"], /^$|^TYPE/, /^$|./],
  [["audit", "list", "--action", "pause"], /^AGE +BY.*\n.* admin +\w+ +pause +fragile/, /\d+-\d+/],
  [["queue", "list"], /^CONTROLLER +KIND.*\nfragile +Fragile .* 1 pause, see /, /^fragile$/m],
  [["queue", "pauses"], /^CONTROLLER +SCOPE.*\nfragile +demo\/glass/, /glass/],
  [["queue", "actions", "fragile"], /^AGE +ACTION.*\n.* pause /, /glass/],
  [["guard", "list"], /^CLUSTER +BREAKER.*\ndefault +closed/, /^default$/m],
  [["guard", "show", "default"], /^cluster +default\nbreaker +closed/, /^default$/m],
  [["dead-letter", "list"], /^CONTROLLER.*\nfragile +demo +vase .*terminal: it broke/, /vase/],
  [["worker", "list"], /^WORKER +ROLE.*\n.* all /, /\w/],
  [
    ["doctor", "--config", CONFIG],
    /^ok +api +http.*\nok +served clusters +1 of 1 .*\nok +workers +1 live/,
    /./,
  ],
  [["config", "print"], /^SETTING +SOURCE.*\n.*redis:\/\/127/, /^redisUrl$/m],
  [["config", "schema"], /^SETTING +VARIABLE/, /^redisUrl$/m],
];

test.each(SHOWN)("%j prints each format, with and without a server", async (given, head, name) => {
  const args = given.map((arg) => (arg === "ID" ? requestId : arg));
  const table = await run(args);
  expect(table).toMatchObject({ code: 0 });
  expect(table.stdout).toMatch(head);
  const json = await run([...args, "-o", "json"]);
  const document: unknown = JSON.parse(json.stdout);
  const yaml = await run([...args, "-o", "yaml"]);
  expect(shapeOf(load(yaml.stdout))).toEqual(shapeOf(document));
  const jsonl = await run([...args, "-o", "jsonl"]);
  const lines = jsonl.stdout.split("\n").filter((line) => line !== "");
  expect(lines.map((line) => typeof JSON.parse(line))).toEqual(lines.map(() => "object"));
  const items = (document as { readonly items?: readonly unknown[] }).items;
  // How many checks `doctor` makes depends on what it measures.
  if (items !== undefined && args[0] !== "doctor") expect(lines).toHaveLength(items.length);
  expect((await run([...args, "-o", "name"])).stdout).toMatch(name);
  if (args[0] === "config" || args[0] === "doctor") return;
  const here = await run([...args, "-o", "json"], {
    ...remote(),
    ...local(),
    KONVERGE_SERVER: "",
  });
  expect(here).toMatchObject({ code: 0 });
  expect(shapeOf(JSON.parse(here.stdout))).toEqual(shapeOf(document));
});

/** Returns the field names, because values may change between two calls. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])];
  if (typeof value !== "object" || value === null) return typeof value;
  return Object.keys(value).toSorted();
}

const ORDERS: readonly (readonly [args: readonly string[], said: RegExp])[] = [
  [["queue", "pause", "-n", "demo", "--dry-run", ...WHY], /^would pause fragile demo\n/],
  [["queue", "pause", "fragile", ...WHY], /fragile +all +admin/],
  [["queue", "resume", "fragile", ...WHY], /^resumed 0 keys with pending requests\n$/],
  [["guard", "isolate", "default", ...WHY], /isolated .*by admin: a test/],
  [["guard", "reset", "default", ...WHY], /closed .*by admin: a test/],
  [["guard", "set-rate", "default", "50", ...WHY], /^CLUSTER/],
  [["guard", "set-rate", "default", "configured", ...WHY], /^CLUSTER/],
  [["dead-letter", "release", "fragile", "--all", "--dry-run", ...WHY], /^1 would be released\n$/],
];

test.each(ORDERS)("%j is recorded with the token as the author", async (args, said) => {
  const ended = await run(args);
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toMatch(said);
});

test("cancels a request by its ID, but not in a dry run", async () => {
  const target = { controller: "fragile", namespace: "demo", name: "glass" };
  const { id } = await client.reconciles.create(target);
  const dry = await run(["reconcile", "cancel", id, "--dry-run", ...WHY]);
  expect(dry.stdout).toMatch(/\nwaiting /);
  const guard = await run(["guard", "isolate", "default", "--dry-run", ...WHY]);
  expect(guard.stdout).toMatch(/\ndefault +closed/);
  expect(await run(["reconcile", "cancel", id, ...WHY])).toMatchObject({ stdout: "cancelled\n" });
});

const BAD: readonly (readonly [args: readonly string[], code: number, why: RegExp])[] = [
  [
    ["reconcile", "enqueue", "fragile", "cup", "-n", "demo", "--wait"],
    1,
    /cup@1: terminal: it broke/,
  ],
  [["queue", "lst"], 2, /Did you mean list/],
  [["object", "list", "--phse", "dead"], 2, /Did you mean --phase/],
  [["object", "list", "--limit", "0"], 2, /--limit: must be a whole number/],
  [["object", "list", "-o", "xml"], 2, /table, json, jsonl, yaml, name/],
  [["reconcile", "enqueue", "node-pool", "blue"], 2, /--namespace: is required, because NodePool/],
  [
    ["reconcile", "enqueue", "node-pool", "blue", "--dry-run"],
    2,
    /--namespace: is required, because NodePool/,
  ],
  [["reconcile", "enqueue", ...BLUE, "--wait", "--timeout", "soon"], 2, /30s, 10m/],
  [["queue", "list", "--server", "konverge.example"], 2, /KONVERGE_SERVER: must be an http/],
  [
    ["queue", "list", "--server", "http://ada:s3cret@x"],
    2,
    /^(?!.*s3cret).*must not contain a user name/,
  ],
  [["reconcile", "enqueue", "nobody", "blue", "-n", "demo"], 3, /no controller "nobody"; known: /],
  [["object", "get", "node-pool", "never", "-n", "demo"], 3, /no requests found for/],
  [["object", "logs", ...BLUE, "--attempt", "999"], 3, /attempt 999 not found/],
  [["object", "history", ...BLUE, "--attempt", "999"], 3, /no attempt 999; available: 1 to|to 1/],
  [["guard", "show", "nobody"], 3, /run `konverge guard list` for the names/],
  [["queue", "resume", "fragile", ...WHY], 3, /not paused/],
  [
    ["reconcile", "enqueue", "fragile", "glass", "-n", "demo", "--wait", "--timeout", "50ms"],
    5,
    /paused by admin .*\n.*still waiting after 0.05 s;/,
  ],
];

test.each(BAD)("%j exits with %i and a fix", async (args, code, why) => {
  const ended = await run(args);
  expect(ended.stderr).toMatch(why);
  expect(ended.code).toBe(code);
});

test("enqueues many objects and reports invalid names", async () => {
  const many = ["reconcile", "enqueue", "fragile", "a", "b"];
  const asked = await run([...many, "-n", "demo", "-o", "name"]);
  expect(asked).toMatchObject({ code: 0, stderr: "" });
  expect(asked.stdout).toMatch(/^.*\/demo\/a@\d+\n.*\/demo\/b@\d+\n$/);
  const wrong = await run([...many, "..", "-n", "demo"]);
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(wrong.stderr).toMatch(/^konverge: "\.\.": is not an object name/);
  const nobody = await run(["reconcile", "enqueue", "nobody", "a", "b", "-n", "demo"]);
  expect(nobody).toMatchObject({ code: 3, stdout: "" });
  expect(nobody.stderr).toMatch(/^konverge: a: .*no controller.*\nkonverge: b: /);
});

test("enqueues once per idempotency key and rejects another body", async () => {
  const key = ["--idempotency-key", "deploy-4711", "-n", "demo", "-o", "name"];
  const once = await run(["reconcile", "enqueue", "fragile", "keyed", ...key]);
  expect(once.code).toBe(0);
  expect(await run(["reconcile", "enqueue", "fragile", "keyed", ...key])).toEqual(once);
  const other = await run(["reconcile", "enqueue", "fragile", "other", ...key]);
  expect(other).toMatchObject({ code: 2, stdout: "" });
});

test("exits with 7 for an invalid token and 6 without a server, without printing the token", async () => {
  const wrong = await run(["worker", "list"], {
    ...remote(),
    KONVERGE_TOKEN: "not-that-one-at-all-0123456789abcdef",
  });
  expect(wrong).toMatchObject({ code: 7, stdout: "" });
  expect(wrong.stderr).not.toContain("not-that-one");
  const printed = await run(["config", "print", "-o", "json"]);
  expect(printed.stdout).not.toContain(TOKEN);
  expect(printed.stdout).toContain("<hidden>");
  const away = await run(["worker", "list", "--server", "http://127.0.0.1:2"]);
  expect(away.code).toBe(6);
  expect(away.stderr).toMatch(/^konverge: no response from http:\/\/127.0.0.1:2: .*\n$/);
});

test("follows events, with and without a server", async () => {
  const target = { controller: "node-pool", namespace: "default", name: "blue" };
  const watch = ["reconcile", "watch", "--name", "blue", "--count", "1", "-o", "json"];
  for (const env of [remote(), { ...remote(), ...local(), KONVERGE_SERVER: "" }]) {
    let isOver = false;
    const seen = run(watch, env).finally(() => (isOver = true));
    // The first event may arrive before the watch is open.
    await until("the event arrived", async () => {
      await client.reconciles.wait((await client.reconciles.create(target)).id);
      return isOver;
    });
    expect(JSON.parse((await seen).stdout)).toMatchObject({
      type: "attempt",
      data: { controller: "node-pool", name: "blue", outcome: "done" },
    });
  }
});

test("accepts keys printed by other commands", async () => {
  const listed = await run(["object", "list", "--controller", "node-pool", "-o", "name"]);
  const [key = "", ...more] = listed.stdout.trim().split("\n");
  expect(more).toEqual([]);
  for (const command of ["get", "history", "diff", "blame"]) {
    expect(await run(["object", command, key, "-o", "json"])).toMatchObject({ code: 0 });
  }
  const asked = await run(["reconcile", "enqueue", key, key.replace("blue", "red"), "-o", "name"]);
  expect(asked.stdout).toMatch(/\/blue@\d+\n.*\/red@\d+\n$/);
  expect(await run(["object", "get", "node-pool/x"])).toMatchObject({ code: 2, stdout: "" });
  const nobody = await run(["object", "get", "node-pool"]);
  expect(nobody).toMatchObject({ code: 2, stderr: expect.stringContaining("<name>: ") as string });
});

test("--all prints all pages; a page prints the next cursor", async () => {
  const names = Array.from({ length: 5 }, (_, n) => ({
    controller: "fragile",
    namespace: "pages",
    name: `p-${n}`,
  }));
  await client.reconciles.createMany(names);
  const page = await run(["object", "list", "-n", "pages", "--limit", "2", "-o", "name"]);
  expect(page.stdout.trimEnd().split("\n")).toHaveLength(2);
  expect(page.stderr).toMatch(/^next page: --cursor '.*p-1', or use --all\n$/);
  const all = await run(["object", "list", "-n", "pages", "--limit", "2", "--all", "-o", "jsonl"]);
  expect(all.stdout.trimEnd().split("\n")).toHaveLength(5);
  const yaml = await run(["object", "list", "-n", "pages", "--all", "-o", "yaml"]);
  expect(loadAll(yaml.stdout)).toMatchObject([{ items: names.map(() => ({})) }]);
});

test("object logs --follow prints each line once, also of a later attempt", async () => {
  const words = ["object", "logs", "fragile", "vase", "-n", "demo", "--follow"];
  const command = ["--conditions=@konverge/source", "apps/cli/src/main.ts", ...words];
  const following = spawn(process.execPath, command, {
    env: { ...process.env, ...remote() },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => following.once("close", resolve));
  const attempts: string[] = [];
  createInterface({ input: following.stdout }).on("line", (line) => {
    const [, attempt] = /^\S+ +(\d+) +info +opening the box$/.exec(line) ?? [];
    attempts.push(attempt ?? line);
  });
  try {
    await until("the first line is printed", () => attempts.length > 0);
    const [first = ""] = attempts;
    await client.deadLetters.release({ controller: "fragile", by: "ada", reason: "a test" });
    await until("the next attempt is printed", () => attempts.length > 1);
    expect(attempts).toEqual([first, String(Number(first) + 1)]);
  } finally {
    following.kill("SIGTERM");
    await ended;
  }
});
