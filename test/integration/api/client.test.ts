import { startApi, type RunningApi } from "@konverge/api";
import { createClient, type Client } from "@konverge/client";
import { readSettings } from "@konverge/contracts";
import type { WorkQueue } from "@konverge/queue";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { startTcpProxy, type TcpProxy } from "../../chaos/tcp-proxy.ts";
import { announce } from "../queue/announce.ts";
import { keyOf, useQueues, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const TOKEN = "a-token-of-the-test-0123456789abcdef";
const harness = useQueues();
let api: RunningApi;
let client: Client;
let queue: WorkQueue;

beforeEach(async () => {
  const { apiUrl: url, prefix } = harness;
  await announce(harness);
  const settings = readSettings({
    env: {
      KONVERGE_REDIS_URL: url,
      KONVERGE_PREFIX: prefix,
      KONVERGE_API_PORT: "0",
      KONVERGE_TOKEN: TOKEN,
      KONVERGE_LOG_LEVEL: "silent",
    },
  });
  api = await startApi({ settings, version: "test" });
  client = createClient({ server: api.url, token: TOKEN });
  queue = harness.open();
});
afterEach(() => api.stop());

const POOL = { controller: "node-pool", namespace: "demo", name: "blue" };
const WHY = { by: "ada", reason: "a bad release" };

test("a request is made, waited for and found in its object's history", async () => {
  const accepted = await client.reconciles.create({ ...POOL, reason: "deploy 4711" });
  expect(accepted).toMatchObject({ coalesced: false });
  expect(await client.reconciles.get(accepted.id)).toMatchObject({ phase: "waiting" });
  await expect(client.reconciles.wait(accepted.id, { timeoutMs: 50 })).rejects.toMatchObject({
    code: "wait_timeout",
  });
  const worker = workOn(queue, () => ({ kind: "done" }));
  onTestFinished(() => worker.stop());
  expect(await client.reconciles.wait(accepted.id)).toMatchObject({ outcome: "done" });
  const { key, attempts } = await client.objects.get(POOL);
  expect(key).toBe(accepted.key);
  expect(attempts).toMatchObject([{ outcome: "done" }]);
});

test("many are requested at once with a result each, and listed over all pages", async () => {
  const names = Array.from({ length: 25 }, (_, n) => `pool-${String(n).padStart(2, "0")}`);
  const { accepted, items } = await client.reconciles.createMany([
    ...names.map((name) => ({ ...POOL, name })),
    { ...POOL, controller: "nobody" },
  ]);
  expect(accepted).toBe(25);
  expect(items.at(-1)).toMatchObject({ error: { code: "unknown_controller" } });
  const listed: string[] = [];
  for await (const { key } of client.objects.list({ phase: "waiting", limit: 10 })) {
    listed.push(key.split("/").at(-1) ?? "");
  }
  expect(listed).toEqual(names);
});

test("pauses, cancels and releases are ordered in the name of the token", async () => {
  const { id } = await client.reconciles.create(POOL);
  expect(await client.queues.pause({ ...POOL, ...WHY })).toMatchObject({
    items: [{ by: "admin" }],
  });
  expect(await client.queues.pauses()).toMatchObject({ items: [{ reason: "a bad release" }] });
  expect(await client.reconciles.cancel(id, WHY)).toEqual({ id, result: "cancelled" });
  expect(await client.queues.resume({ ...POOL, ...WHY })).toEqual({ resumed: 0 });
  const { items: actions } = await client.controllers.actions({ controller: "node-pool" });
  expect(actions.map(({ kind }) => kind)).toEqual(["resume", "cancel", "pause"]);
  const worker = workOn(queue, () => ({ kind: "terminal", error: new Error("cannot") }));
  await queue.request(keyOf("red"), { kind: "watch" });
  await until("it died", () => worker.closed.length === 1);
  await worker.stop();
  const dead = await client.deadLetters.list().page();
  expect(dead.items).toMatchObject([{ phase: "deadLettered", failures: 1 }]);
  const release = { controller: "node-pool", ...WHY };
  expect(await client.deadLetters.release({ ...release, dryRun: true })).toMatchObject({
    count: 1,
  });
  expect(await client.deadLetters.release(release)).toMatchObject({ count: 1 });
});

test("problems of the API are errors with code, status and a pointer for each thing that is wrong", async () => {
  await expect(client.reconciles.create({ ...POOL, name: "" })).rejects.toMatchObject({
    code: "invalid_request",
    status: 422,
    errors: [{ pointer: "/name" }],
  });
  await expect(client.guards.get("default")).rejects.toMatchObject({ code: "not_found" });
  const stranger = createClient({ server: api.url, token: "wrong" });
  await expect(stranger.workers.list()).rejects.toMatchObject({ code: "unauthorized" });
});

test("ends an aborted wait at once", async () => {
  const { id } = await client.reconciles.create(POOL);
  const waiting = client.reconciles.wait(id, { signal: AbortSignal.timeout(50) });
  await expect(waiting).rejects.toMatchObject({ name: "TimeoutError" });
});

/** Creates a client with a number of interrupted responses and short waits between tries. */
async function torn(retries = 4): Promise<{ readonly client: Client; readonly proxy: TcpProxy }> {
  const proxy = await startTcpProxy(Number(new URL(api.url).port));
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const server = `http://127.0.0.1:${proxy.port}`;
  return { client: createClient({ server, token: TOKEN, retry: { retries, baseMs: 5 } }), proxy };
}
const requested = async (name: string) => (await queue.getKey(keyOf(name)))?.requested;

test("P1: a request whose answers are lost is made once, and answered as the first time", async () => {
  const { client: unlucky, proxy } = await torn();
  proxy.tear(3);
  const accepted = await unlucky.reconciles.create(POOL);
  expect(accepted).toMatchObject({ coalesced: false });
  expect(await requested("blue")).toBe(1);
  proxy.tear(2);
  const names = Array.from({ length: 100 }, (_, n) => `many-${n}`);
  const many = await unlucky.reconciles.createMany(names.map((name) => ({ ...POOL, name })));
  expect(many.accepted).toBe(100);
  expect(new Set(await Promise.all(names.map(requested)))).toEqual(new Set([1]));
});

test("orders whose answers are lost are given once", async () => {
  const { client: unlucky, proxy } = await torn();
  const { id } = await client.reconciles.create(POOL);
  proxy.tear(1);
  await unlucky.queues.pause({ ...POOL, ...WHY });
  proxy.tear(1);
  // Given twice it would find nothing to resume.
  expect(await unlucky.queues.resume({ ...POOL, ...WHY })).toEqual({ resumed: 0 });
  proxy.tear(1);
  expect(await unlucky.reconciles.cancel(id, WHY)).toEqual({ id, result: "cancelled" });
  const { items } = await client.controllers.actions({ controller: "node-pool" });
  expect(items.map(({ kind }) => kind)).toEqual(["cancel", "resume", "pause"]);
});

test("reports a response lost on every try, and the caller can continue with the key", async () => {
  const { client: unlucky, proxy } = await torn(1);
  proxy.tear(2);
  const idempotencyKey = "deploy-4711";
  const lost = unlucky.reconciles.create(POOL, { idempotencyKey });
  await expect(lost).rejects.toMatchObject({ code: "api_unreachable", status: 0 });
  const again = await client.reconciles.create(POOL, { idempotencyKey });
  expect(again).toMatchObject({ coalesced: false });
  expect(await requested("blue")).toBe(1);
  const other = client.reconciles.create({ ...POOL, name: "red" }, { idempotencyKey });
  await expect(other).rejects.toMatchObject({ code: "idempotency_mismatch" });
});

test("events resume after the last one when connections break", async () => {
  const { client: unlucky, proxy } = await torn();
  const seen: string[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const { id, type, data } of unlucky.events({}, { signal: stop.signal })) {
      expect(id).not.toBe("");
      if (type !== "change") continue;
      seen.push(data.action);
      // Later events arrive over the next connection.
      proxy.cut();
      proxy.heal();
    }
  })();
  await until("a client listens", async () => {
    await client.queues.pause({ ...POOL, ...WHY });
    return seen.length > 0;
  });
  const before = seen.length;
  await client.queues.resume({ ...POOL, ...WHY });
  await until("the next one came", () => seen.slice(before).includes("resume"));
  expect(seen.filter((action) => action === "resume")).toHaveLength(1);
  stop.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
});
