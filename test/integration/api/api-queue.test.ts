import { createApi, openQueueAccess, type QueueAccess } from "@konverge/api";
import {
  keyListSchema,
  operatorActionListSchema,
  pauseListSchema,
  problemSchema,
  reconcileResultsSchema,
} from "@konverge/contracts";
import { openGuardControl, type GuardControl } from "@konverge/guard";
import { createControllerRegistry } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { afterEach, beforeEach, expect, test } from "vitest";
import { useQueues, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
let access: QueueAccess;
let guards: GuardControl;
const TYPE = { cluster: "default", group: "demo.konverge.dev", version: "v1" } as const;
const POOL = { controller: "node-pool", namespace: "demo", name: "blue" };
const ADA = { by: "ada", reason: "a bad release" };
const PATH = "node-pool/default/nodepools.demo.konverge.dev/demo";

beforeEach(async () => {
  const redis = harness.target;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix: harness.prefix });
  await registry.announce([
    { ...TYPE, name: "node-pool", kind: "NodePool", resource: "nodepools", scope: "Namespaced" },
    { ...TYPE, name: "nodes", kind: "Node", resource: "nodes", scope: "Cluster" },
  ]);
  await registry.close();
  access = openQueueAccess({
    redis: harness.apiTarget,
    prefix: harness.prefix,
    maxQueueLength: 5,
    onError: () => undefined,
  });
  guards = openGuardControl({ redis, prefix: harness.prefix });
});
afterEach(async () => {
  await Promise.all([access.close(), guards.close()]);
});

async function call(path: string, body?: unknown): Promise<Response> {
  const metrics = createMetrics({ version: "test" });
  const common = { access, guards, metrics, token: undefined, cluster: "default" };
  const api = createApi({ ...common, onError: () => undefined });
  const headers = { host: "localhost:7070", "content-type": "application/json" };
  const init =
    body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  return await api.fetch(new Request(`http://localhost:7070${path}`, init));
}
const json = async (path: string, body?: unknown): Promise<unknown> => {
  const response = await call(path, body);
  expect([path, response.status]).toEqual([path, 200]);
  return await response.json();
};
const problem = async (path: string, body?: unknown) => {
  const response = await call(path, body);
  const { code, errors } = problemSchema.parse(await response.json());
  return { code, status: response.status, pointers: errors?.map(({ pointer }) => pointer) };
};

test("shows a pause in lists and in the object until the resume", async () => {
  await call("/v1/reconciles", POOL);
  const listed = pauseListSchema.parse(await json("/v1/pauses", { ...POOL, ...ADA }));
  const scope = { kind: "key", key: `${PATH}/blue` };
  expect(listed.items).toMatchObject([{ controller: "node-pool", scope, ...ADA }]);
  const object = await json("/v1/objects/default/node-pool/demo/blue");
  expect(object).toMatchObject({
    pending: `${PATH}/blue@1`,
    phase: "paused",
    paused: { scope, ...ADA },
  });
  expect(await json("/v1/pauses/resume", { ...POOL, ...ADA })).toEqual({ resumed: 0 });
  expect(await json("/v1/pauses")).toEqual({ items: [] });
  expect(await problem("/v1/pauses/resume", { ...POOL, ...ADA })).toMatchObject({
    code: "not_found",
    status: 404,
  });
  const { items } = operatorActionListSchema.parse(
    await json("/v1/operator-actions?controller=node-pool"),
  );
  expect(items.map(({ kind }) => kind)).toEqual(["resume", "pause"]);
});

test("pauses a namespace for all controllers", async () => {
  const listed = pauseListSchema.parse(await json("/v1/pauses", { namespace: "demo", ...ADA }));
  expect(listed.items.map(({ controller }) => controller)).toEqual(["node-pool", "nodes"]);
  await json("/v1/pauses/resume", { namespace: "demo", ...ADA });
  expect(await json("/v1/pauses")).toEqual({ items: [] });
});

test("searches the keys of all controllers in pages", async () => {
  const names = ["a-1", "a-2", "b-1"];
  const items = names.map((name) => ({ ...POOL, name }));
  await call("/v1/reconciles/batch", { items: [...items, { controller: "nodes", name: "a-9" }] });
  const all: string[] = [];
  for (let cursor = ""; ;) {
    const query = `limit=1&name=a-${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const response = await call(`/v1/keys?${query}`);
    const page = keyListSchema.parse(await response.json());
    const link = response.headers.get("link");
    const next = new URLSearchParams(link?.match(/^<\/v1\/keys\?(.*)>; rel="next"$/)?.[1] ?? "");
    expect([next.get("cursor") ?? undefined, next.get("name")]).toEqual([
      page.next,
      page.next === undefined ? null : "a-",
    ]);
    all.push(...page.items.map(({ key }) => key.split("/").at(-1) ?? ""));
    if (page.next === undefined) break;
    cursor = page.next;
  }
  expect(all).toEqual(["a-1", "a-2", "a-9"]);
  const waiting = await json("/v1/keys?controller=nodes&phase=waiting&namespace=_");
  expect(waiting).toMatchObject({ items: [{ phase: "waiting", failures: 0 }] });
});

test("lists, counts and releases dead-lettered keys", async () => {
  const { queue } = await access.find("default", "node-pool");
  const state = { heals: false };
  const worker = workOn(queue, () =>
    state.heals ? { kind: "done" } : { kind: "terminal", error: new Error("cannot") },
  );
  for (const name of ["a-1", "a-2", "b-1"]) await call("/v1/reconciles", { ...POOL, name });
  await until("all died", () => worker.closed.length === 3);
  const { items } = keyListSchema.parse(await json("/v1/dead-letters?name=a"));
  expect(items.map(({ deadLetter }) => deadLetter?.error?.message)).toEqual(["cannot", "cannot"]);

  const release = "/v1/dead-letters/release";
  const match = { controller: "node-pool", contains: "a", ...ADA };
  expect(await json(release, { ...match, dryRun: true })).toEqual({ count: 2, dryRun: true });
  expect(worker.closed).toHaveLength(3);
  state.heals = true;
  expect(await json(release, match)).toEqual({ count: 2, dryRun: false });
  expect(await json(release, { ...POOL, name: "b-1", ...ADA })).toMatchObject({ count: 1 });
  await until("they ran", () => worker.closed.length === 6);
  expect(await problem(release, { ...POOL, name: "b-1", ...ADA })).toMatchObject({ status: 404 });
  await worker.stop();
});

test("cancels a request by its ID", async () => {
  const accepted = (await (await call("/v1/reconciles", POOL)).json()) as { id: string };
  const path = `/v1/reconciles/${encodeURIComponent(accepted.id)}`;
  expect(await json(`${path}/cancel`, ADA)).toEqual({ id: accepted.id, result: "cancelled" });
  expect(await json(path)).toMatchObject({ phase: "finished", outcome: "cancelled" });
  expect(await problem("/v1/reconciles/nonsense/cancel", ADA)).toMatchObject({ status: 404 });
});

test("answers each item of a batch, and reports Retry-After for a full queue", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const items = [
    ...names.map((name) => ({ ...POOL, name, reason: "batch" })),
    { controller: "unknown", name: "x" },
    { controller: "node-pool", name: "x" },
  ];
  const answer = reconcileResultsSchema.parse(await json("/v1/reconciles/batch", { items }));
  expect(answer.accepted).toBe(5);
  const codes = answer.items.map((item) => ("error" in item ? item.error.code : "accepted"));
  expect(codes).toEqual([...names.map(() => "accepted"), "unknown_controller", "invalid_request"]);

  const full = await call("/v1/reconciles", { ...POOL, name: "f" });
  expect([full.status, full.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await full.json()).toMatchObject({ code: "queue_full", retryAfterMs: 5_000 });
  expect((await call("/v1/reconciles", { ...POOL, name: "a" })).status).toBe(202);
});

test.each([
  ["an order without author and reason", "/v1/pauses", { controller: "nodes" }, ["/by", "/reason"]],
  ["a pause of nothing", "/v1/pauses", ADA, ["/controller"]],
  ["a pause of a key without its controller", "/v1/pauses", { name: "a", ...ADA }, ["/controller"]],
  [
    "a release by name and by part",
    "/v1/dead-letters/release",
    { ...POOL, contains: "b", ...ADA },
    ["/contains"],
  ],
  ["an empty batch", "/v1/reconciles/batch", { items: [] }, ["/items"]],
  ["an unknown phase", "/v1/keys?phase=ded", undefined, ["/phase"]],
  ["an unknown filter", "/v1/dead-letters?phase=deadLettered", undefined, ["/phase"]],
])("%s returns 422 with a pointer", async (_what, path, body, pointers) => {
  expect(await problem(path, body)).toEqual({ code: "invalid_request", status: 422, pointers });
});
