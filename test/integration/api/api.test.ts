import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi, openQueueAccess, type QueueAccess } from "@konverge/api";
import { acceptedReconcileSchema, problemSchema } from "@konverge/contracts";
import { openGuardControl, type GuardControl } from "@konverge/guard";
import { startRedis } from "@konverge/infra-redis";
import type { RedisTarget } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();
let access: QueueAccess;
let guards: GuardControl;

const announceBoth = (target: RedisTarget) =>
  announce({ target, prefix: harness.prefix }, [
    NODE_POOL,
    { ...NODE_POOL, name: "nodes", kind: "Node", scope: "Cluster" },
  ]);
beforeEach(async () => {
  await announceBoth(harness.target);
  access = open(harness.apiTarget);
  guards = openGuardControl({ redis: harness.apiTarget, prefix: harness.prefix });
});
afterEach(async () => {
  await access.close();
  await guards.close();
});

const open = (redis: RedisTarget) =>
  openQueueAccess({ redis, prefix: harness.prefix, onError: () => undefined });

interface CallOptions {
  readonly token?: string;
  readonly access?: QueueAccess;
}

const apiOf = (options: CallOptions = {}) =>
  createApi({
    access: options.access ?? access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: options.token,
    cluster: "default",
    onError: () => undefined,
  });

function call(
  path: string,
  init: RequestInit = {},
  options: CallOptions = {},
  api = apiOf(options),
) {
  const request = new Request(`http://localhost:7070${path}`, init);
  if (!request.headers.has("host")) request.headers.set("host", "localhost:7070");
  return api.fetch(request);
}
const JSON_BODY = { "content-type": "application/json" };
const post = (body: unknown, init: RequestInit = {}) =>
  call("/v1/reconciles", {
    method: "POST",
    headers: JSON_BODY,
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
  });
async function problemOf(response: Response) {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  const problem = problemSchema.parse(await response.json());
  expect(problem.status).toBe(response.status);
  return problem;
}
const streamOf = (bytes: number) => new Blob(["x".repeat(bytes)]).stream();
const POOL = { controller: "node-pool", namespace: "demo", name: "blue" };

test("P1: returns 202 with an ID and Location; a second request joins the first", async () => {
  const first = await post({ ...POOL, reason: "deploy 4711" });
  expect(first.status).toBe(202);
  const accepted = (await first.json()) as { id: string; key: string; coalesced: boolean };
  expect(accepted).toMatchObject({
    key: "node-pool/default/nodepools.demo.konverge.dev/demo/blue",
    coalesced: false,
  });
  expect(await (await post(POOL)).json()).toMatchObject({ coalesced: true });
  const state = await call(first.headers.get("location") ?? "");
  expect(await state.json()).toMatchObject({ id: accepted.id, phase: "waiting" });
});

test("P1: sends a request to the shard of its key after a change of the shards", async () => {
  const ask = async (name: string) =>
    acceptedReconcileSchema.parse(
      await (await post({ controller: "node-pool", namespace: "demo", name })).json(),
    );
  await ask("a");
  for (const [shards, name] of [
    [4, "b"],
    [2, "c"],
  ] as const) {
    await harness.redis.set(`${harness.prefix}:{default}/shards`, shards);
    const { id } = await ask(name);
    expect(await harness.open({ shards }).getRequest(id)).toMatchObject({ phase: "waiting" });
  }
});

test("prevents content sniffing for every response", async () => {
  const keyed = { headers: { ...JSON_BODY, "idempotency-key": "k" } };
  const body = { controller: "node-pool", namespace: "demo", name: "a" };
  const answers = [
    await post(body),
    await post(body, keyed),
    await post(body, keyed),
    await post("{"),
    await call("/v1/nothing"),
    await call("/v1/session", { method: "DELETE" }),
    await call("/v1/session", {
      method: "POST",
      headers: JSON_BODY,
      body: '{"token":"t"}',
    }),
    await call("/v1/events"),
  ];
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 400, 404, 204, 401, 200]);
  for (const answer of answers) {
    expect(answer.headers.get("x-content-type-options"), answer.url).toBe("nosniff");
    await answer.body?.cancel();
  }
});

test("answers a wait as soon as the request ends", async () => {
  const location = (await post(POOL)).headers.get("location") ?? "";
  const answer = call(`${location}?wait=20s`);
  const { queue } = await access.find("default", "node-pool");
  const worker = queue.work({
    workerId: "test",
    handle: async () => ({ outcome: { kind: "done" } }),
    onError: () => undefined,
  });
  onTestFinished(() => worker.stop());
  expect(await (await answer).json()).toMatchObject({ phase: "finished", outcome: "done" });
});

test("answers pending waits with the current state on shutdown", async () => {
  const api = apiOf();
  const location = (await post(POOL)).headers.get("location") ?? "";
  const waiting = [
    call(`${location}?wait=60s`, {}, {}, api),
    call(location, { headers: { prefer: "wait=60" } }, {}, api),
  ];
  api.close();
  for (const answer of waiting) {
    expect(await (await answer).json()).toMatchObject({ phase: "waiting" });
  }
});

test.each([
  ["an empty body", {}, ["/controller", "/name"]],
  ["wrong types", { controller: 1, name: "" }, ["/controller", "/name"]],
  ["an unknown field", { ...POOL, nmae: "x" }, ["/nmae"]],
  ["names that are paths", { ...POOL, namespace: "a/b", name: ".." }, ["/namespace", "/name"]],
  ["names that are none", { ...POOL, namespace: "..", name: "a%2Fb" }, ["/namespace", "/name"]],
  ["no namespace", { controller: "node-pool", name: "a" }, ["/namespace"]],
  ["a namespace too much", { controller: "nodes", namespace: "a", name: "a" }, ["/namespace"]],
])("%s returns 422 with a pointer per error", async (_what, body, pointers) => {
  const response = await post(body);
  expect(response.status).toBe(422);
  const problem = await problemOf(response);
  expect(problem.errors?.map(({ pointer }) => pointer)).toEqual(pointers);
  for (const { detail } of problem.errors ?? [])
    expect(detail).toMatch(/must|is required|is not|remove/);
});

test.each([
  ["no JSON", () => post("{"), 400, "invalid_body"],
  [
    "a form",
    () => post("a=b", { headers: { "content-type": "application/x-www-form-urlencoded" } }),
    415,
    "unsupported_media_type",
  ],
  [
    "no content type",
    () => call("/v1/reconciles", { method: "POST" }),
    415,
    "unsupported_media_type",
  ],
  ["too much", () => post({ ...POOL, reason: "x".repeat(70_000) }), 413, "body_too_large"],
  [
    "too much that does not say so",
    () => post(POOL, { body: streamOf(70_000), duplex: "half" }),
    413,
    "body_too_large",
  ],
  [
    "an unknown controller",
    () => post({ ...POOL, controller: "nobody" }),
    404,
    "unknown_controller",
  ],
  ["an unknown route", () => call("/v1/nothing"), 404, "route_not_found"],
  ["an unknown file", () => call("/jobs/static/none.js"), 404, "route_not_found"],
  ["an unknown id", () => call("/v1/reconciles/nonsense"), 404, "not_found"],
  [
    "an id that was never given",
    () =>
      call(
        `/v1/reconciles/${encodeURIComponent("node-pool/default/nodepools.demo.konverge.dev/demo/never@7")}`,
      ),
    404,
    "not_found",
  ],
  [
    "an object without requests",
    () => call("/v1/objects/default/node-pool/demo/never"),
    404,
    "not_found",
  ],
  ["a wrong wait", () => call("/v1/reconciles/x?wait=long"), 422, "invalid_request"],
])("%s is a problem", async (_what, run, status, code) => {
  const response = await run();
  expect(response.status).toBe(status);
  const problem = await problemOf(response);
  expect(problem.code).toBe(code);
  const [page = "", anchor] = problem.type.split("#");
  expect(await (await call(page)).text()).toContain(`## ${anchor}\n`);
});

test.each([
  ["PUT", "/v1/reconciles", "GET, POST"],
  ["DELETE", "/v1/reconciles/x", "GET"],
  // Not GET, although `/v1/reconciles/{id}` would match.
  ["PUT", "/v1/reconciles/batch", "POST"],
  ["PATCH", "/v1/guards/default/rate", "PUT"],
  ["POST", "/livez", "GET"],
  ["POST", "/", "GET"],
])("%s %s is a 405 that names what is served", async (method, path, allowed) => {
  const response = await call(path, { method });
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")).toBe(allowed);
  expect((await problemOf(response)).code).toBe("method_not_allowed");
});

test("without Redis, calls get 503 with Retry-After, and the API stays ready to give that answer", async () => {
  const away = open({ url: "redis://127.0.0.1:1" });
  onTestFinished(() => away.close());
  const response = await call("/v1/controllers", {}, { access: away });
  expect(response.status).toBe(503);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await problemOf(response)).code).toBe("redis_unavailable");
  for (const path of ["/livez", "/readyz"]) {
    expect((await call(path, {}, { access: away })).status).toBe(200);
  }
});

test("a Redis that dies under the API is a 503 until it is back", async () => {
  const dir = await mkdtemp(join(tmpdir(), "konverge-test-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const first = await startRedis({ dir });
  onTestFinished(() => first.kill());
  await announceBoth(first);
  const mine = open(first);
  onTestFinished(() => mine.close());
  const ask = () =>
    call(
      "/v1/reconciles",
      { method: "POST", headers: JSON_BODY, body: JSON.stringify(POOL) },
      { access: mine },
    );
  expect((await ask()).status).toBe(202);
  await first.kill();
  const away = await ask();
  expect(away.status).toBe(503);
  expect((await problemOf(away)).code).toBe("redis_unavailable");
  const second = await startRedis({ dir, port: first.port });
  onTestFinished(() => second.kill());
  await vi.waitFor(async () => expect((await ask()).status).toBe(202), { timeout: 300_000 });
});

test("requires the admin token if set, else a loopback host", async () => {
  const token = "0123456789abcdef";
  const refused = await call("/v1/controllers", {}, { token });
  expect(refused.status).toBe(401);
  expect((await problemOf(refused)).code).toBe("unauthorized");
  const headers = { authorization: `Bearer ${token}` };
  expect((await call("/v1/controllers", { headers }, { token })).status).toBe(200);
  const rebound = await call("/v1/controllers", { headers: { host: "evil.example.com" } });
  expect(rebound.status).toBe(403);
});

test("an object's attempts can be read", async () => {
  const location =
    (await post({ ...POOL, reason: "<script>alert(1)</script>" })).headers.get("location") ?? "";
  const { queue } = await access.find("default", "node-pool");
  const worker = queue.work({
    workerId: "test",
    handle: async () => ({ outcome: { kind: "done" } }),
    onError: () => undefined,
  });
  onTestFinished(() => worker.stop());
  await call(`${location}?wait=20s`);
  expect(await (await call("/v1/objects/default/node-pool/demo/blue")).json()).toMatchObject({
    phase: "idle",
    lastOutcome: "done",
  });
});
