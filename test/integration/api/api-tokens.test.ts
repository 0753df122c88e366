import {
  auditPageSchema,
  contentionReportSchema,
  keyListSchema,
  pauseListSchema,
  problemSchema,
  whoamiSchema,
} from "@konverge/contracts";
import { createControllerRegistry } from "@konverge/queue";
import { expect, test } from "vitest";
import { useApi, type Call, type Sent } from "./api-harness.ts";
import { workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const api = useApi();
const ADMIN_TOKEN = "the-token-of-the-configuration";
const BLUE = { controller: "node-pool", namespace: "blue", name: "a" };
const GREEN = { controller: "node-pool", namespace: "green", name: "a" };
const ORDER = { by: "mallory", reason: "a bad release" };
const make: typeof api.token = (name, rest) => api.token(name, rest);

/** Listens where all can reach it. */
const serve: typeof api.serve = (options) => api.serve({ isLoopback: false, ...options });
/** The base64url part of `kvg_<id>_<secret>`, which can contain underscores. */
const secretOf = (token: string) => token.split("_").slice(2).join("_");
async function refused(response: Response, status: number): Promise<string> {
  expect(response.status).toBe(status);
  const { code, detail } = problemSchema.parse(await response.json());
  expect(code).toBe(status === 401 ? "unauthorized" : "forbidden");
  return detail;
}
const READS = [
  "/v1/controllers",
  "/metrics",
  "/jobs",
  "/jobs/api/queues",
  "/v1/overview",
  "/v1/nothing",
];

test("requires a token on other addresses than loopback", async () => {
  const call = serve();
  for (const path of [...READS, "/v1/whoami"]) {
    await refused(await call(path), 401);
    await refused(await call(path, { headers: { host: "127.0.0.1" } }), 401);
  }
  await refused(await call("/v1/reconciles", { body: BLUE }), 401);
  expect((await call("/livez")).status).toBe(200);
});

test("requires no token on loopback, but rejects proxied and cross-origin requests", async () => {
  const call = serve({ isLoopback: true });
  expect(whoamiSchema.parse(await (await call("/v1/whoami")).json())).toMatchObject({
    via: "local",
    role: "admin",
  });
  await refused(await call("/v1/whoami", { headers: { "x-forwarded-for": "10.0.0.1" } }), 403);
  await refused(await call("/metrics", { headers: { host: "evil.example.com" } }), 403);
  for (const headers of [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: "https://evil.example.com" },
    { origin: "null" },
  ] as Record<string, string>[]) {
    await refused(await call("/v1/reconciles", { body: BLUE, headers }), 403);
  }
  const headers = { origin: "http://localhost:7070" };
  expect((await call("/v1/reconciles", { body: BLUE, headers })).status).toBe(202);
});

test("rejects every kind of invalid token", async () => {
  const good = await make("good");
  const expired = await make("short", { ttlMs: 1_000 });
  const call = serve({ token: ADMIN_TOKEN });
  expect((await call("/v1/whoami", { token: good })).status).toBe(200);
  await until(
    "it expires",
    async () => (await call("/v1/whoami", { token: expired })).status === 401,
  );
  const [, id = ""] = good.split("_");
  const secret = secretOf(good);
  for (const token of [
    "",
    "x",
    ADMIN_TOKEN.slice(1),
    `${ADMIN_TOKEN}x`,
    expired,
    good.slice(0, -1),
    `${good}x`,
    `kvg_${id}_${"A".repeat(43)}`,
    `kvg_${"0".repeat(12)}_${secret}`,
    "kvg___proto___x",
    "x".repeat(7_000),
  ]) {
    await refused(await call("/v1/whoami", { headers: { authorization: `Bearer ${token}` } }), 401);
  }
  for (const authorization of [`Basic ${good}`, good, `Bearer ${good} ${good}`, "Bearer"]) {
    await refused(await call("/v1/whoami", { headers: { authorization } }), 401);
  }
  // Not in the address, where logs would have it.
  await refused(await call(`/v1/whoami?token=${good}&access_token=${good}`), 401);
});

test("rejects a revoked token within a second; Redis never stores tokens", async () => {
  const token = await make("gone");
  const call = serve();
  expect((await call("/v1/whoami", { token })).status).toBe(200);
  const stored = await api.queues.redis.hgetall(`${api.queues.prefix}:tokens`);
  expect(JSON.stringify(stored)).not.toContain(secretOf(token));
  await until("its use is noted", async () => (await api.access.tokens.list())[0]?.lastUsedAt);
  await api.access.tokens.revoke("gone");
  await until("it is refused", async () => (await call("/v1/whoami", { token })).status === 401);
  await expect(api.access.tokens.revoke("gone")).rejects.toMatchObject({ code: "not_found" });
});

test("a token of another version is rejected, blocks no other token and can be revoked", async () => {
  const call = serve();
  const token = await make("mine", { role: "operator" });
  const [id = "", text = ""] =
    Object.entries(await api.queues.redis.hgetall(`${api.queues.prefix}:tokens`))[0] ?? [];
  const later = { ...(JSON.parse(text) as object), name: "later", role: "auditor" };
  const records = { "00000000000a": JSON.stringify(later), "00000000000b": "not JSON" };
  await api.queues.redis.hset(`${api.queues.prefix}:tokens`, records);
  const { tokens } = api.access;
  expect((await call("/v1/whoami", { token })).status).toBe(200);
  expect((await tokens.list()).map(({ name }) => name)).toEqual(["mine"]);
  expect(await tokens.listUnreadable()).toEqual([
    { id: "00000000000a", name: "later" },
    { id: "00000000000b", name: "unknown" },
  ]);
  await refused(await call("/v1/whoami", { token: token.replace(id, "00000000000a") }), 401);
  await expect(make("later")).rejects.toMatchObject({ code: "invalid_request" });
  await make("another");
  await tokens.revoke("mine");
  await tokens.revoke("later");
  await tokens.revoke("00000000000b");
  expect(await tokens.listUnreadable()).toEqual([]);
  await until("it is refused", async () => (await call("/v1/whoami", { token })).status === 401);
});

test("denies changes to viewers and the audit log to operators", async () => {
  const call = serve();
  const viewer = await make("screen");
  const operator = await make("ci", { role: "operator" });
  const changes: [string, Sent][] = [
    ["/v1/reconciles", { body: BLUE }],
    ["/v1/reconciles/batch", { body: { items: [BLUE] } }],
    ["/v1/reconciles/x/cancel", { body: ORDER }],
    ["/v1/objects/default/node-pool/blue/a/reconcile", { body: {} }],
    ["/v1/objects/default/node-pool/blue/a/pause", { body: ORDER }],
    ["/v1/objects/default/node-pool/blue/a/resume", { body: ORDER }],
    ["/v1/queues/default/node-pool/pause", { body: ORDER }],
    ["/v1/queues/default/node-pool/resume", { body: ORDER }],
    ["/v1/pauses", { body: { ...BLUE, ...ORDER } }],
    ["/v1/pauses/resume", { body: { ...BLUE, ...ORDER } }],
    ["/v1/dead-letters/release", { body: { controller: "node-pool", ...ORDER } }],
    ["/v1/guards/default/isolate", { body: ORDER }],
    ["/v1/guards/default/reset", { body: ORDER }],
    ["/v1/guards/default/rate", { body: { ratePerSecond: 1, ...ORDER }, method: "PUT" }],
  ];
  for (const [path, sent] of changes) {
    const detail = await refused(await call(path, { ...sent, token: viewer }), 403);
    expect(detail).toBe('requires the role operator ("screen" is viewer)');
  }
  await refused(await call("/v1/audit", { token: operator }), 403);
  expect(await api.queues.redis.keys(`${api.queues.prefix}:*key*`)).toEqual([]);
});

test("the author of an order is the token's name; every change is in the audit log", async () => {
  const call = serve();
  const ci = await make("ci", { role: "operator" });
  const admin = await make("root", { role: "admin" });
  const asked = await call("/v1/reconciles", {
    token: ci,
    body: { ...BLUE, reason: "deploy 4711" },
  });
  const { id } = (await asked.json()) as { id: string };
  await call("/v1/reconciles/batch", {
    token: ci,
    body: { items: [BLUE, GREEN, { ...BLUE, name: "b" }] },
  });
  const paused = await call("/v1/pauses", { token: ci, body: { ...BLUE, ...ORDER } });
  expect(pauseListSchema.parse(await paused.json()).items).toMatchObject([{ by: "ci" }]);
  await call("/v1/objects/default/node-pool/blue/a/resume", {
    token: ci,
    body: { reason: "without an author" },
  });
  await call(`/v1/reconciles/${encodeURIComponent(id)}/cancel`, { token: ci, body: ORDER });
  const release = { controller: "node-pool", contains: "a", ...ORDER };
  await call("/v1/dead-letters/release", { token: ci, body: { ...release, dryRun: true } });
  await call("/v1/dead-letters/release", { token: ci, body: release });
  const items = await until("requests of the second are written", async () => {
    const page = auditPageSchema.parse(await (await call("/v1/audit", { token: admin })).json());
    return page.items.some(({ action }) => action === "reconcile") && page.items;
  });
  const where = { cluster: "default", controller: "node-pool", by: "ci", via: "token" };
  const entries = items.map((entry) => ({ ...entry, id: undefined, at: undefined }));
  expect(entries).toHaveLength(6);
  expect(entries).toEqual(
    expect.arrayContaining([
      { ...where, id: undefined, at: undefined, action: "reconcile", namespace: "blue", count: 3 },
      { ...where, id: undefined, at: undefined, action: "reconcile", namespace: "green", count: 1 },
      {
        ...where,
        id: undefined,
        at: undefined,
        action: "pause",
        namespace: "blue",
        name: "a",
        reason: ORDER.reason,
      },
      {
        ...where,
        action: "resume",
        namespace: "blue",
        name: "a",
        reason: "without an author",
        count: 0,
      },
      {
        ...where,
        action: "cancel",
        namespace: "blue",
        name: "a",
        filter: id,
        reason: ORDER.reason,
      },
      {
        ...where,
        id: undefined,
        at: undefined,
        action: "release",
        filter: "name contains a",
        reason: ORDER.reason,
        count: 0,
      },
    ]),
  );
  const first = auditPageSchema.parse(
    await (await call("/v1/audit?limit=1&action=pause", { token: admin })).json(),
  );
  expect(first.items).toMatchObject([{ action: "pause" }]);
  const wrong = await call("/v1/audit?cursor=x", { token: admin });
  expect(problemSchema.parse(await wrong.json())).toMatchObject({ code: "invalid_request" });
});

test("enforces the scope on every route and in lists", async () => {
  const all = serve({ token: ADMIN_TOKEN });
  for (const body of [BLUE, GREEN, { controller: "nodes", name: "n" }]) {
    expect((await all("/v1/reconciles", { token: ADMIN_TOKEN, body })).status).toBe(202);
  }
  await all("/v1/pauses", { token: ADMIN_TOKEN, body: { ...GREEN, ...ORDER } });
  const token = await make("blue-team", { role: "admin", scope: { namespaces: ["blue"] } });
  const call: Call = (path, sent = {}) => all(path, { token, ...sent });

  const keys = keyListSchema.parse(await (await call("/v1/keys")).json());
  expect(keys.items.map(({ key }) => key.split("/")[3])).toEqual(["blue"]);
  expect(keyListSchema.parse(await (await call("/v1/reconciles")).json())).toEqual(keys);
  expect(pauseListSchema.parse(await (await call("/v1/pauses")).json()).items).toEqual([]);
  const history = auditPageSchema.parse(await (await call("/v1/audit")).json());
  expect(history.items.filter(({ namespace }) => namespace !== "blue")).toEqual([]);
  expect((await call("/v1/objects/default/node-pool/blue/a")).status).toBe(200);
  expect((await call("/v1/reconciles", { body: BLUE })).status).toBe(202);

  const green = encodeURIComponent("node-pool/default/nodepools.demo.konverge.dev/green/a@1");
  const outside: [string, Sent?][] = [
    ["/v1/keys?namespace=green"],
    ["/v1/attempts?namespace=green"],
    ["/v1/dead-letters?namespace=_"],
    ["/v1/objects/default/node-pool/green/a"],
    ["/v1/objects/default/node-pool/green/a/attempts"],
    ["/v1/objects/default/node-pool/green/a/attempts/1"],
    ["/v1/objects/default/node-pool/green/a/contention"],
    ["/v1/objects/default/nodes/_/n"],
    [`/v1/reconciles/${green}`],
    [`/v1/reconciles/${green}/cancel`, { body: ORDER }],
    ["/v1/operator-actions?controller=node-pool"],
    ["/v1/reconciles", { body: GREEN }],
    ["/v1/reconciles", { body: { controller: "nodes", name: "n" } }],
    ["/v1/objects/default/node-pool/green/a/reconcile", { body: {} }],
    ["/v1/objects/default/node-pool/green/a/pause", { body: ORDER }],
    ["/v1/objects/default/node-pool/green/a/resume", { body: ORDER }],
    ["/v1/queues/default/node-pool/pause", { body: ORDER }],
    ["/v1/queues/default/node-pool/resume", { body: ORDER }],
    ["/v1/pauses", { body: { namespace: "green", ...ORDER } }],
    ["/v1/pauses/resume", { body: { controller: "node-pool", ...ORDER } }],
    ["/v1/dead-letters/release", { body: { controller: "node-pool", contains: "a", ...ORDER } }],
    ["/v1/guards/default/isolate", { body: ORDER }],
    ["/v1/guards/default/rate", { body: { ratePerSecond: 1, ...ORDER }, method: "PUT" }],
    ["/metrics"],
    ["/jobs"],
    ["/jobs/api/queues"],
  ];
  for (const [path, sent] of outside) {
    const response = await call(path, sent);
    expect([path, response.status]).toEqual([path, 403]);
    await refused(response, 403);
  }
  const batch = await call("/v1/reconciles/batch", { body: { items: [GREEN, BLUE] } });
  expect(await batch.json()).toMatchObject({
    accepted: 1,
    items: [{ error: { code: "forbidden" } }, { coalesced: true }],
  });
});

test("cursors and links contain no name outside of the scope", async () => {
  const all = serve({ token: ADMIN_TOKEN });
  for (const name of ["a", "secret-merger", "z"]) {
    for (const namespace of ["blue", "green", "red"]) {
      const body = { controller: "node-pool", namespace, name: `${namespace}-${name}` };
      await all("/v1/reconciles", { token: ADMIN_TOKEN, body });
    }
  }
  await all("/v1/reconciles", { token: ADMIN_TOKEN, body: { controller: "nodes", name: "other" } });
  const scopes = {
    "team-green": { namespaces: ["green"] },
    "team-nodes": { controllers: ["nodes"] },
  };
  const foreign = { "team-green": /blue|red-|nodes/, "team-nodes": /node-pool|blue|green|red/ };
  for (const name of ["team-green", "team-nodes"] as const) {
    const token = await make(name, { scope: scopes[name] });
    for (const list of [
      "/v1/keys?",
      "/v1/keys?phase=deadLettered&",
      "/v1/reconciles?",
      "/v1/dead-letters?",
    ]) {
      for (let cursor: string | undefined = ""; cursor !== undefined;) {
        const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
        const response = await all(`${list}limit=1${query}`, { token });
        const text = await response.text();
        expect(response.status).toBe(200);
        expect(text).not.toMatch(foreign[name]);
        expect(decodeURIComponent(response.headers.get("link") ?? "")).not.toMatch(foreign[name]);
        cursor = keyListSchema.parse(JSON.parse(text)).next;
      }
    }
  }
});

test("errors for scoped tokens name no controller or workflow outside of the scope", async () => {
  const call = serve();
  const { prefix, target } = api.queues;
  const registry = createControllerRegistry({ redis: target, prefix, cluster: "default" });
  await registry.announce([], [{ name: "secret-roll", version: 1 }]);
  await registry.close();
  const scope = { controllers: ["gone", "workflow.gone"] };
  const token = await make("stale", { role: "operator", scope });
  for (const [path, body] of [
    ["/v1/keys?controller=gone"],
    ["/v1/rollups?controller=gone"],
    ["/v1/objects/default/gone/blue/a"],
    ["/v1/reconciles", { ...BLUE, controller: "gone" }],
    ["/v1/runs?workflow=gone"],
    ["/v1/runs", { workflow: "gone", input: {} }],
  ] as const) {
    const response = await call(path, { token, body });
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.text()).not.toMatch(/node-pool|nodes|secret-roll/);
  }
});

test("omits other controllers and clusters from a scope", async () => {
  const call = serve();
  const nodes = await make("nodes", { scope: { controllers: ["nodes"] } });
  const edge = await make("edge", { scope: { clusters: ["edge"] } });
  const names = async (path: string, token: string) => {
    const { items } = (await (await call(path, { token })).json()) as { items: { name: string }[] };
    return items.map(({ name }) => name);
  };
  expect(await names("/v1/controllers", nodes)).toEqual(["nodes"]);
  const queues = await call("/v1/queues", { token: nodes });
  expect(await queues.json()).toMatchObject({ items: [{ controller: "nodes", waiting: 0 }] });
  for (const path of [
    "/v1/controllers",
    "/v1/workers",
    "/v1/queues",
    "/v1/contention",
    "/v1/keys",
    "/v1/overview",
  ]) {
    await refused(await call(path, { token: edge }), 403);
  }
  await refused(await call("/v1/rollups?controller=node-pool", { token: nodes }), 403);
  expect(
    contentionReportSchema.parse(await (await call("/v1/contention", { token: nodes })).json()),
  ).toEqual({
    episodes: [],
    moreEpisodes: 0,
    contendedObjects: [],
    competingManagers: [],
    ownershipFlips: [],
    loops: [],
  });
});

test("logs in a browser with an HttpOnly, same-site cookie", async () => {
  const call = serve();
  const token = await make("ada", { role: "operator" });
  await refused(await call("/v1/session", { body: { token: `${token}x` } }), 401);
  await refused(
    await call("/v1/session", { body: { token }, headers: { "sec-fetch-site": "cross-site" } }),
    403,
  );
  const login = await call("/v1/session", {
    body: { token },
    headers: { "sec-fetch-site": "same-origin", "x-forwarded-proto": "https" },
  });
  expect(await login.json()).toMatchObject({ name: "ada", role: "operator", via: "session" });
  const set = login.headers.get("set-cookie") ?? "";
  for (const part of ["HttpOnly", "SameSite=Strict", "Path=/", "Secure", "__Host-"])
    expect(set).toContain(part);
  const cookie = set.split(";")[0] ?? "";
  expect(set).not.toContain(token);
  const session = cookie.split("=")[1] ?? "";
  await refused(await call("/v1/whoami", { token: session }), 401);
  const keys = await api.queues.redis.keys(`${api.queues.prefix}:sessions/*`);
  const stored = await Promise.all(keys.map((key) => api.queues.redis.zrange(key, "0", "-1")));
  expect(stored.flat().join()).not.toContain(session.split(".")[1]);
  const behind = await call("/v1/session", {
    body: { token },
    headers: { "x-forwarded-proto": "https", "x-forwarded-prefix": "/tools/konverge" },
  });
  expect(behind.headers.get("set-cookie")).toContain("Path=/tools/konverge/;");

  expect((await call("/v1/whoami", { headers: { cookie } })).status).toBe(200);
  const ask = (headers: Record<string, string>) =>
    call("/v1/reconciles", { body: BLUE, headers: { cookie, ...headers } });
  expect((await ask({ "sec-fetch-site": "same-origin" })).status).toBe(202);
  expect((await ask({ origin: "http://localhost:7070" })).status).toBe(202);
  await refused(await ask({}), 403);
  await refused(await ask({ "sec-fetch-site": "same-site" }), 403);
  await refused(await ask({ origin: "http://localhost:7071" }), 403);
  const logout = await call("/v1/session", { method: "DELETE", headers: { cookie } });
  expect([logout.status, logout.headers.get("set-cookie")]).toEqual([
    204,
    expect.stringContaining("Max-Age=0"),
  ]);
  await until("the session ends with the logout", async () => {
    return (await call("/v1/whoami", { headers: { cookie } })).status === 401;
  });
  expect((await call("/v1/whoami", { token })).status).toBe(200);
  const again = await call("/v1/session", { body: { token } });
  const next = again.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect((await call("/v1/whoami", { headers: { cookie: next } })).status).toBe(200);
  await api.access.tokens.revoke("ada");
  await until("the session ends with its token", async () => {
    return (await call("/v1/whoami", { headers: { cookie: next } })).status === 401;
  });
});

test("the audit log separates the sessions of a token from the token", async () => {
  const call = serve();
  const token = await make("ada", { role: "operator" });
  const login = await call("/v1/session", { body: { token } });
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  const headers = { cookie, "sec-fetch-site": "same-origin" };
  await call("/v1/pauses", { body: { ...BLUE, ...ORDER }, headers });
  await call("/v1/pauses", { body: { ...GREEN, ...ORDER }, token });
  // The second one ends no session.
  for (let n = 0; n < 2; n += 1) await call("/v1/session", { method: "DELETE", headers });
  const admin = await make("root", { role: "admin" });
  const read = await call("/v1/audit", { token: admin });
  const { items } = auditPageSchema.parse(await read.json());
  expect(items.map(({ by, via, action }) => `${action} by ${by} via ${via}`)).toEqual([
    "session.end by ada via session",
    "pause by ada via token",
    "pause by ada via session",
    "session.create by ada via token",
  ]);
});

test("a session of the configured token ends with that token", async () => {
  const call = serve({ token: ADMIN_TOKEN });
  const login = await call("/v1/session", { body: { token: ADMIN_TOKEN } });
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(await (await call("/v1/whoami", { headers: { cookie } })).json()).toMatchObject({
    name: "admin",
    via: "session",
  });
  const changed = serve({ token: `${ADMIN_TOKEN}-changed` });
  await refused(await changed("/v1/whoami", { headers: { cookie } }), 401);
});

test("limits the rate per caller with Retry-After", async () => {
  const call = serve({ rate: { ratePerSecond: 1, burst: 2 } });
  const flood = await make("flood");
  const other = await make("other");
  const statuses: number[] = [];
  for (let i = 0; i < 3; i++) statuses.push((await call("/v1/whoami", { token: flood })).status);
  expect(statuses).toEqual([200, 200, 429]);
  const answer = await call("/v1/whoami", { token: flood });
  expect(answer.headers.get("retry-after")).toBe("1");
  expect(problemSchema.parse(await answer.json())).toMatchObject({ code: "rate_limited" });
  expect((await call("/v1/whoami", { token: other })).status).toBe(200);
});

test("Prefer: wait returns the result, or 202 on timeout", async () => {
  const call = serve({ isLoopback: true });
  const ask = (wait: string) =>
    call("/v1/objects/default/node-pool/blue/a/reconcile", { body: {}, headers: { prefer: wait } });
  expect((await ask("wait=0")).status).toBe(202);
  expect((await ask("respond-async, wait=61")).status).toBe(422);
  const { queue } = await api.access.find("default", "node-pool");
  const worker = workOn(queue, () => ({ kind: "done" }));
  const answer = await ask("wait=20");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("preference-applied")).toBe("wait=20");
  expect(await answer.json()).toMatchObject({ state: { phase: "finished", outcome: "done" } });
  const attempts = await call("/v1/objects/default/node-pool/blue/a/attempts");
  const { items } = (await attempts.json()) as { items: { epoch: number }[] };
  expect(items.length).toBeGreaterThan(0);
  const one = await call(`/v1/objects/default/node-pool/blue/a/attempts/${items[0]?.epoch}`);
  expect(await one.json()).toEqual(items[0]);
  expect((await call("/v1/objects/default/node-pool/blue/a/attempts/999")).status).toBe(404);
  await worker.stop();
});

test("requests have the class of their body, within the classes of the token", async () => {
  const call = serve();
  const { queue } = await api.access.find("default", "node-pool");
  const role = "operator";
  const tokens = {
    all: await make("all", { role }),
    quiet: await make("quiet", { role, classes: ["event", "background"] }),
    night: await make("night", { role, classes: ["background"] }),
  };
  /** The class of the attempt for a request of its own object, or the rejection. */
  let count = 0;
  const classOf = async (token: string, body: object, isBatch = false): Promise<string> => {
    count += 1;
    const item = { ...BLUE, name: `class-${count}`, ...body };
    const response = await call(`/v1/reconciles${isBatch ? "/batch" : ""}`, {
      token,
      body: isBatch ? { items: [item] } : item,
    });
    if (!response.ok) return await refused(response, 403);
    const answer = (await response.json()) as { items?: { error?: { detail: string } }[] };
    const error = answer.items?.[0]?.error;
    if (error !== undefined) return error.detail;
    const worker = workOn(queue, () => ({ kind: "done" }));
    const lease = await until("it starts", () =>
      worker.started.find(({ key }) => key.name === item.name),
    );
    await worker.stop();
    return lease.class;
  };
  expect(await classOf(tokens.all, {})).toBe("interactive");
  expect(await classOf(tokens.all, {}, true)).toBe("event");
  expect(await classOf(tokens.all, { class: "background" })).toBe("background");
  expect(await classOf(tokens.all, { class: "interactive" }, true)).toBe("interactive");
  expect(await classOf(tokens.quiet, {})).toBe("event");
  expect(await classOf(tokens.night, {}, true)).toBe("background");
  const limited = 'class "interactive", but the token is limited to event, background';
  expect(await classOf(tokens.quiet, { class: "interactive" })).toBe(limited);
  expect(await classOf(tokens.quiet, { class: "interactive" }, true)).toBe(limited);
  const release = { controller: "node-pool", namespace: "blue", by: "ann", reason: "fixed" };
  const answer = await call("/v1/dead-letters/release", { token: tokens.quiet, body: release });
  expect(await refused(answer, 403)).toBe(limited);
  const path = "/v1/objects/default/node-pool/blue/a/reconcile";
  const now = await call(path, { token: tokens.night, body: { class: "event" } });
  expect(await refused(now, 403)).toContain("limited to background");
  const unknown = await call("/v1/reconciles", {
    token: tokens.all,
    body: { ...BLUE, class: "x" },
  });
  expect(unknown.status).toBe(422);
  const whoami = await call("/v1/whoami", { token: tokens.night });
  expect(await whoami.json()).toMatchObject({ classes: ["background"] });
});
