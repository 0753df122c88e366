import { readFileSync } from "node:fs";
import { createControllerRegistry, proposed } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { Admission } from "../../../libs/api/src/http/admission.ts";
import { GRANTING_GROUPS } from "../../../libs/api/src/rights/find-needed.ts";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { announceOpenKinds, WIDGET } from "./announce-open-kinds.ts";
import { problemIn, useApi, type Call } from "./api-harness.ts";
import { mutationOf, TARGETS } from "./api-targets.ts";
import { ADMIN, GROUP, HOME, own, useKubernetesUsers, widgets } from "./kubernetes-users.ts";

const harness = useApi({ announces: false });
const users = useKubernetesUsers(harness);
const { serve } = users;
const BLUE = { controller: "ctlblue", namespace: HOME, name: "blue" };
const LOAD = {
  slots: {},
  memoryBytes: 1,
  heapBytes: 1,
  heapLimitBytes: 2,
  eventLoopDelayMs: 0,
  calls: { admitted: 0, deferred: 0, waiting: {}, inFlight: 0 },
};
const ALL_KINDS = { resources: ["*"], apiGroups: ["*"] };

/** An API whose connection to the API server can fail. */
async function serveBehindProxy(given: Parameters<typeof serve>[0] = {}) {
  const { credentials } = users;
  const { port, hostname } = new URL(credentials.server);
  expect(hostname).toBe("127.0.0.1");
  const proxy = await startTcpProxy(Number(port));
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const server = credentials.server.replace(port, String(proxy.port));
  const settings = { callMs: 5_000, keptMs: 200, onError: () => undefined, ...given };
  return { proxy, call: serve({ credentials: { ...credentials, server }, ...settings }) };
}

async function tokenWith(...given: Parameters<typeof users.cluster.account>): Promise<string> {
  return await users.cluster.token((await users.cluster.account(...given)).name);
}
const onInstallation = (...verbs: string[]) => own("installations", harness.queues.prefix, verbs);

async function textOf(call: Call, path: string): Promise<string> {
  return await (await call(path, { token: ADMIN })).text();
}

test.each(["cut", "hold"] as const)(
  "an event stream ends when the API server is unreachable (%s)",
  async (fault) => {
    const { name, withdraw } = await users.cluster.account([widgets(["watch"])], HOME);
    const token = await users.cluster.token(name);
    const { proxy, call } = await serveBehindProxy();
    const stream = await call(`/v1/events?controller=ctlblue&namespace=${HOME}`, { token });
    expect(stream.status).toBe(200);
    proxy[fault]();
    await withdraw();
    const reader = stream.body?.getReader();
    await until("the stream ends", async () => (await reader?.read())?.done === true);
  },
);

test("a user whose right is withdrawn during the wait of a change receives the state at its beginning", async () => {
  const { name, withdraw } = await users.cluster.account([widgets(["reconcile"])], HOME);
  const token = await users.cluster.token(name);
  const { proxy, call } = await serveBehindProxy();
  const send = () =>
    call("/v1/reconciles", {
      token,
      body: BLUE,
      headers: { prefer: "wait=2", "idempotency-key": "the-first" },
    });
  const sent = send();
  const isMade = async () => (await textOf(call, "/v1/keys?controller=ctlblue")).includes("/blue");
  await until("the change is made", isMade);
  proxy.cut();
  const response = await sent;
  expect(response.status).toBe(202);
  const answer = await response.text();
  // The rights precede the stored response.
  expect(await problemIn(await send())).toMatchObject({ code: "identity_unavailable" });
  proxy.heal();
  const again = await send();
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect([again.status, await again.text()]).toEqual([202, answer]);
  await withdraw();
  await until("the right is withdrawn", async () => (await send()).status === 403);
});

test("the response omits the outcome of a mutation whose right cannot be checked again", async () => {
  const token = await tokenWith([widgets(["patch"])], HOME);
  const { proxy, call } = await serveBehindProxy();
  for (const [path, body] of [
    ["/v1/mutations", { ...mutationOf(TARGETS.inside), id: "one" }],
    ["/v1/mutations/batch", { items: [{ ...mutationOf(TARGETS.inside), id: "many" }] }],
  ] as const) {
    const id = path.endsWith("batch") ? "many" : "one";
    const sent = call(path, { token, body, headers: { prefer: "wait=30" } });
    const target = `/v1/mutations/default%2F${id}`;
    const isMade = async () => (await call(target, { token: ADMIN })).status === 200;
    await until("the change is made", isMade);
    const madeMs = performance.now();
    proxy.cut();
    // The results of the first second need no further check.
    await until("the wait is long", () => performance.now() - madeMs > 1_500);
    const cancelled = await call(target, { token: ADMIN, method: "DELETE" });
    expect(cancelled.status).toBe(200);
    const text = await (await sent).text();
    expect([id, text.includes("cancelled")]).toEqual([id, false]);
    expect(text).toContain(`default/${id}`);
    proxy.heal();
    await until("it is reached", async () => (await call("/v1/whoami", { token })).status === 200);
  }
});

test("one user cannot use up the reviews of the others", async () => {
  const [greedy, modest] = [await tokenWith([]), await tokenWith([])];
  const slow = { ratePerSecond: 0.001 };
  const call = serve({ rate: { ...slow, burst: 60 }, userRate: { ...slow, burst: 20 } });
  const targets = Array.from({ length: 100 }, (_, at) => `ns-${at}`);
  const ask = async (token: string, namespace: string) =>
    (await call(`/v1/keys?controller=ctlblue&namespace=${namespace}`, { token })).status;
  const statuses: number[] = [];
  for (const each of targets) statuses.push(await ask(greedy, each));
  expect([statuses.includes(503), statuses.at(-1)]).toEqual([true, 503]);
  expect(await ask(modest, HOME)).toBe(403);
});

/** A body that counts the bytes that were read from it. */
function countedBody(bytes: number) {
  let read = 0;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull(controller) {
        if (read >= bytes) return controller.close();
        const chunk = new Uint8Array(Math.min(65_536, bytes - read)).fill(0x20);
        read += chunk.length;
        controller.enqueue(chunk);
      },
    },
    { highWaterMark: 0 },
  );
  return { body, read: () => read };
}

test.each([
  ["a viewer", "/v1/mutations/batch", "the announced length"],
  ["a viewer", "/v1/mutations/batch", "no announced length"],
  ["a user", `/v1/objects/default/ctlblue/${HOME}/blue/reconcile`, "no announced length"],
  ["a user", "/v1/runs/wfblue%2Fdefault%2Frun/signal", "the announced length"],
  ["a user", "/v1/guards/default/isolate", "no announced length"],
] as const)("the body of %s without rights is not read: %s (%s)", async (who, path, length) => {
  const token =
    who === "a user" ? await tokenWith([]) : await harness.token("looks", { role: "viewer" });
  const call = serve();
  const counted = countedBody(8 * 1_024 * 1_024);
  const response = await call(path, {
    token,
    method: "POST",
    bytes: counted.body,
    headers: {
      "content-type": "application/json",
      ...(length === "the announced length" ? { "content-length": `${8 * 1_024 * 1_024}` } : {}),
    },
  });
  expect(await problemIn(response)).toMatchObject({ code: "forbidden" });
  expect(counted.read()).toBeLessThanOrEqual(65_536);
});

test("refused requests count towards the rate of their caller, also by the size of their bodies", async () => {
  const [token, viewer] = [await tokenWith([]), await harness.token("looks", { role: "viewer" })];
  const rate = { ratePerSecond: 0.001, burst: 100 };
  const statusesOf = async (call: Call, bearer: string, times: number) => {
    const all: number[] = [];
    for (let n = 0; n < times; n++) {
      const body = { items: [mutationOf(TARGETS.inside)] };
      all.push((await call("/v1/mutations/batch", { token: bearer, body })).status);
    }
    return all;
  };
  const ofViewer = await statusesOf(serve({}, { rate }), viewer, 101);
  expect(ofViewer).toEqual([...Array.from({ length: 100 }, () => 403), 429]);
  // Without a length, the whole limit is charged.
  expect(await statusesOf(serve({}, { rate }), token, 2)).toEqual([403, 429]);
});

test("the highest role of a user counts for operations on the whole installation", async () => {
  const operator = await tokenWith([onInstallation("get", "operate")]);
  const admin = await tokenWith([onInstallation("get", "operate", "administer")]);
  const both = await tokenWith([
    onInstallation("get", "operate", "administer"),
    widgets(["patch", "create"]),
  ]);
  await announceOpenKinds(harness.queues, [{ ...WIDGET, role: "admin" }]);
  const call = serve();
  const statusOf = async (token: string, id: string) => {
    const body = { ...mutationOf(TARGETS.inside), id };
    return (await call("/v1/mutations", { token, body })).status;
  };
  expect(await statusOf(operator, "a")).toBe(403);
  expect(await statusOf(admin, "b")).toBe(202);
  expect(await statusOf(both, "c")).toBe(202);
});

test("mutations of kinds that grant rights need a right on the installation", async () => {
  const kinds = GRANTING_GROUPS.map((group, at) => ({
    ...WIDGET,
    group,
    kind: `Granting${at}`,
    resource: "clusterroles",
  }));
  await announceOpenKinds(harness.queues, kinds);
  const token = await tokenWith([{ ...ALL_KINDS, verbs: ["patch", "create", "get"] }]);
  const operator = await tokenWith([onInstallation("operate")]);
  const call = serve();
  const plain = { ...mutationOf(TARGETS.inside), id: "plain" };
  // All kinds include the installation, but patch is none of its verbs.
  expect((await call("/v1/mutations", { token, body: plain })).status).toBe(202);
  for (const { kind } of kinds) {
    const body = { ...mutationOf(TARGETS.inside), kind, id: kind };
    for (const [path, sent] of [
      ["/v1/mutations", body],
      ["/v1/mutations/batch", { items: [plain, body] }],
    ] as const) {
      const response = await call(path, { token, body: sent });
      expect([kind, (await problemIn(response)).code]).toEqual([kind, "forbidden"]);
    }
    expect((await call("/v1/mutations", { token: operator, body })).status).toBe(202);
    const target = `/v1/mutations/default%2F${kind}`;
    expect((await call(target, { token, method: "DELETE" })).status).toBe(404);
    expect((await call(target, { token })).status).toBe(200);
  }
});

test("docs/identity.md lists the groups of kinds that grant rights", () => {
  const page = readFileSync("docs/identity.md", "utf8");
  for (const group of GRANTING_GROUPS) expect(page).toContain(`\`${group}\``);
});

test("a mutation without the right on its object is reported like a missing one", async () => {
  const call = serve();
  const body = { ...mutationOf(TARGETS["another namespace"]), id: "order-7" };
  expect((await call("/v1/mutations", { token: ADMIN, body })).status).toBe(202);
  const token = await tokenWith([widgets(["get", "patch"])], HOME);
  for (const method of ["GET", "DELETE"]) {
    const [known, missing] = await Promise.all(
      ["order-7", "order-8"].map((id) => call(`/v1/mutations/default%2F${id}`, { token, method })),
    );
    const text = (await known?.text()) ?? "";
    expect(text.replaceAll("order-7", "order-8")).toBe(await missing?.text());
    expect(text).not.toContain("nsred");
  }
});

test("errors name no open kinds to a user without rights on them", async () => {
  const token = await tokenWith([]);
  const body = { ...mutationOf(TARGETS.inside), kind: "Unknown" };
  const text = await (await serve()("/v1/mutations", { token, body })).text();
  expect(text).toContain("kind_not_open");
  expect(text).not.toContain("Widget");
  expect(text).not.toContain(GROUP);
});

test("the buckets of callers are bounded in number", () => {
  const admission = new Admission({ ratePerSecond: 0.001, burst: 2 });
  admission.admit({ id: "greedy" });
  admission.admit({ id: "greedy" });
  for (let n = 0; n < 20_000; n++) admission.admit({ id: `user-${n}` });
  expect(admission.size).toBeLessThanOrEqual(10_000);
  expect(() => admission.admit({ id: "greedy" })).toThrow("more work");
  expect(() => admission.admit({ id: "user-19999" })).not.toThrow();
});

test("each refusal of a repeated request is in the audit log", async () => {
  const { name } = await users.cluster.account([]);
  const token = await users.cluster.token(name);
  const call = serve();
  const headers = { "idempotency-key": "the-same" };
  for (let n = 0; n < 2; n++) {
    const response = await call("/v1/reconciles", { token, body: BLUE, headers });
    expect(await problemIn(response)).toMatchObject({ code: "forbidden" });
    await harness.access.audit.close();
  }
  const { items } = (await (await call("/v1/audit", { token: ADMIN })).json()) as {
    items: { action: string }[];
  };
  const refused = items.filter(({ action }) => action === "refused");
  const entry = {
    by: `kubernetes:system:serviceaccount:${HOME}:${name}`,
    filter: "createReconcile: forbidden",
    ...BLUE,
    count: 1,
  };
  expect(refused).toMatchObject([entry, entry]);
});

test("users with long names are refused, since approvals would confuse their shortened names", async () => {
  const call = serve();
  const most = 200 - `kubernetes:system:serviceaccount:${HOME}:`.length;
  const accepted = await users.cluster.token(await users.cluster.named("a".repeat(most)));
  const whoami = await call("/v1/whoami", { token: accepted });
  expect(((await whoami.json()) as { name: string }).name).toHaveLength(200);
  for (const end of ["b", "c"]) {
    const name = await users.cluster.named(`${"a".repeat(most)}${end}`);
    const response = await call("/v1/whoami", { token: await users.cluster.token(name) });
    expect(await problemIn(response)).toMatchObject({
      status: 403,
      code: "forbidden",
      detail: expect.stringContaining("must have at most 189 characters (got 190: ") as string,
    });
  }
});

test("an explanation names no controllers outside the scope", async () => {
  const { target: redis, prefix } = harness.queues;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  onTestFinished(() => registry.close());
  const stop = registry.heartbeat(
    {
      workerId: "w",
      controllers: ["ctlblue", "ctlred"],
      definitions: {},
      role: "watch",
      version: "1",
      startedAt: "2026-01-01T00:00:00Z",
      host: "h",
    },
    { load: () => ({ ...LOAD, leads: ["ctlred"] }) },
  );
  onTestFinished(stop);
  const { access } = harness;
  await until("the worker lives", async () => (await access.workers("default")).length === 1);
  const user = await tokenWith([widgets(["get"])], HOME);
  const scoped = await harness.token("scoped", { scope: { controllers: ["ctlblue"] } });
  const call = serve();
  for (const token of [user, scoped]) {
    const path = `/v1/objects/default/ctlblue/${HOME}/blue/explanation`;
    const response = await call(path, { token });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringContaining("no_leader")]);
    expect(text).toContain("unserved");
    expect(text).not.toContain("ctlred");
  }
});

test("plans are approved with the highest role of a user, and not with rights on the object", async () => {
  const key = `ctlblue/default/widgets.${GROUP}/${HOME}/blue`;
  const hash = "a".repeat(64);
  const proposal = {
    key,
    controller: "ctlblue",
    hash,
    summary: {},
    by: 1,
    role: "admin",
    requesters: [],
    since: "2026-01-01T00:00:00Z",
  } as const;
  const propose = () => proposed(undefined, proposal);
  await harness.access.approvals("default").change(key, propose, { record: "{}" });
  const all = ["get", "list", "watch", "reconcile", "patch", "pause", "update", "create"];
  const owner = await tokenWith([widgets(all)], HOME);
  const operator = await tokenWith([onInstallation("get", "operate"), widgets(all)]);
  const admin = await tokenWith([onInstallation("get", "operate", "administer")]);
  const call = serve();
  const path = `/v1/approvals/default/ctlblue/${HOME}/blue/approve`;
  const approve = async (token: string) =>
    (await call(path, { token, body: { hash, by: "ada", reason: "reviewed" } })).status;
  expect(await approve(owner)).toBe(403);
  expect(await approve(operator)).toBe(403);
  expect(await approve(admin)).toBe(200);
});
