import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@konverge/core";
import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createApiServer, type EmbeddedApiServer } from "./api-server.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
let folder = "";
const servers: EmbeddedApiServer[] = [];
const start = async (options: Parameters<typeof createApiServer>[0] = {}) => {
  const server = await createApiServer(options);
  servers.push(server);
  return server;
};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-apiserver-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function send(server: EmbeddedApiServer, method: string, path: string, body?: JsonObject) {
  const response = await fetch(server.url + path, {
    method,
    headers: { "Content-Type": "application/json", "User-Agent": "unit-test/1" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type") === "application/json";
  return {
    code: response.status,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : text,
  };
}
const make = (server: EmbeddedApiServer, name: string) =>
  send(server, "POST", MAPS, { metadata: { name } });

/** All events of a watch, until its end. */
async function readWatch(server: EmbeddedApiServer, path: string) {
  const response = await fetch(server.url + path);
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as { type: string; object: JsonObject });
}

test("a cluster has its namespaces, and kube-system has a uid", async () => {
  const server = await start();
  const { body } = await send(server, "GET", "/api/v1/namespaces/kube-system");
  expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
  expect((await send(server, "GET", "/version")).body.gitVersion).toBe(server.version);
});
test("objects, definitions, the version and the cluster's identity survive a restart", async () => {
  const first = await start({ dataDir: folder });
  const { body: system } = await send(first, "GET", "/api/v1/namespaces/kube-system");
  await make(first, "kept");
  await first.close();
  const second = await start({ dataDir: folder });
  expect(second.resourceVersion).toBe(first.resourceVersion);
  expect((await send(second, "GET", `${MAPS}/kept`)).code).toBe(200);
  const again = await send(second, "GET", "/api/v1/namespaces/kube-system");
  expect(again.body.metadata.uid).toBe(system.metadata.uid);
  const [event] = await readWatch(second, `${MAPS}?watch=true&resourceVersion=1`);
  expect(event).toMatchObject({ type: "ERROR", object: { code: 410, reason: "Expired" } });
});
test("two servers cannot share a data directory", async () => {
  await start({ dataDir: folder });
  await expect(start({ dataDir: folder })).rejects.toThrow(/in use/);
});
test("suggests a fix for a port in use and for an audit log that cannot be opened", async () => {
  const server = await start();
  const port = Number(new URL(server.url).port);
  await expect(start({ port })).rejects.toThrow(/give a free port/);
  await expect(start({ auditLog: join(folder, "none", "audit.log") })).rejects.toThrow(/auditLog/);
});
test.each([
  [429, "text/plain; charset=utf-8"],
  [409, "application/json"],
  [500, "application/json"],
  [503, "application/json"],
  [504, "application/json"],
] as const)("an injected %i equals the real server's response", async (code, type) => {
  const server = await start();
  server.inject({
    verbs: ["create"],
    count: 1,
    effect: { kind: "answer", code, retryAfterSeconds: 2 },
  });
  const answer = await make(server, "a");
  expect(answer.code).toBe(code);
  expect(answer.headers.get("content-type")).toBe(type);
  expect(answer.headers.get("retry-after")).toBe("2");
  expect((await make(server, "a")).code).toBe(201);
});
test("a dropped connection: before the write, or after it", async () => {
  const server = await start();
  server.inject({ verbs: ["create"], count: 1, effect: { kind: "drop", when: "before" } });
  await expect(make(server, "a")).rejects.toThrow("fetch failed");
  expect((await send(server, "GET", `${MAPS}/a`)).code).toBe(404);
  server.inject({ verbs: ["create"], count: 1, effect: { kind: "drop", when: "after" } });
  await expect(make(server, "a")).rejects.toThrow("fetch failed");
  expect((await send(server, "GET", `${MAPS}/a`)).code).toBe(200);
});
test("a silent fault serves the request without a response", async () => {
  const server = await start();
  server.inject({ verbs: ["create"], count: 1, effect: { kind: "silence" } });
  const unanswered = make(server, "a");
  await expect.poll(async () => (await send(server, "GET", `${MAPS}/a`)).code).toBe(200);
  const first = await Promise.race([unanswered, send(server, "GET", `${MAPS}/a`).then(() => "no")]);
  expect(first).toBe("no");
  await Promise.all([server.close(), expect(unanswered).rejects.toThrow("fetch failed")]);
});
test("a cut watch ends, a silent one stays open without events", async () => {
  const server = await start();
  server.inject({ count: 1, effect: { kind: "cutWatch", afterEvents: 1 } });
  await make(server, "a");
  await make(server, "b");
  const seen = await readWatch(server, `${MAPS}?watch=true`);
  expect(seen.map(({ type }) => type)).toEqual(["ADDED"]);
  server.inject({ count: 1, effect: { kind: "silentWatch", afterEvents: 2 } });
  const silent = readWatch(server, `${MAPS}?watch=true`);
  await expect.poll(() => server.watches).toBe(1);
  await make(server, "c");
  expect(server.cutWatches("configmaps")).toBe(1);
  expect(await silent).toHaveLength(2);
});
test("the audit log has a line per finished request, in the real server's format", async () => {
  const auditLog = join(folder, "audit.log");
  const server = await start({ auditLog });
  await make(server, "a");
  await send(server, "GET", `${MAPS}/none`);
  await server.close();
  const events = readFileSync(auditLog, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events).toMatchObject([
    {
      kind: "Event",
      apiVersion: "audit.k8s.io/v1",
      level: "Metadata",
      stage: "ResponseComplete",
      verb: "create",
      requestURI: MAPS,
      userAgent: "unit-test/1",
      objectRef: { resource: "configmaps", namespace: "default", apiVersion: "v1" },
      responseStatus: { code: 201 },
    },
    { verb: "get", objectRef: { name: "none" }, responseStatus: { code: 404 } },
  ]);
});
test("a read that waits for a version returns when it arrives", async () => {
  const server = await start({ freshnessLimitMs: 10_000 });
  const next = Number(server.resourceVersion) + 1;
  const waiting = send(server, "GET", `${MAPS}?resourceVersion=${next}`);
  await make(server, "a");
  const { code, body } = await waiting;
  expect([code, body.items.length]).toEqual([200, 1]);
});
test("names a resource of kube-apiserver that it does not serve", async () => {
  const server = await start();
  const text = async (path: string) => (await send(server, "GET", path)).body.message;
  expect(await text("/api/v1/namespaces/default/endpoints")).toContain(
    "the embedded API server does not serve endpoints",
  );
  expect(await text("/apis/storage.k8s.io/v1/storageclasses")).toContain(
    "does not serve storageclasses.storage.k8s.io",
  );
  expect(await text("/api/v1/namespaces/default/pods/web/log")).toContain("pods/log");
  expect(await text("/api/v1/namespaces/default/things")).toBe(
    "the server could not find the requested resource",
  );
});
test("its kubeconfig works with client-node", async () => {
  const { kubeconfig } = await start();
  const config = new KubeConfig();
  config.loadFromString(kubeconfig);
  const api = config.makeApiClient(CoreV1Api);
  const body = { metadata: { name: "made" }, data: { a: "1" } };
  await api.createNamespacedConfigMap({ namespace: "default", body });
  const { items } = await api.listNamespacedConfigMap({ namespace: "default" });
  expect(items.map(({ metadata }) => metadata?.name)).toEqual(["made"]);
});
