import { KonvergeError, type Gate } from "@konverge/core";
import {
  createKubeClient,
  isTooManyRequests,
  isUnauthorized,
  loadKubeCredentials,
  type CallRecord,
} from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import {
  clientFor,
  sendJson,
  sendStatus,
  startWireServer,
  watchfulGate,
} from "./kube-wire-server.ts";
import { until } from "../../support/until.ts";

const NO_TLS = {};
const target = { namespace: "n", name: "a" };
const object = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { ...target, resourceVersion: "7", uid: "u" },
};

test("keeps connections: many sequential calls need no more than two", async () => {
  await using server = await startWireServer(({ response }) => sendJson(response, 200, object));
  await using client = clientFor(server);
  for (let n = 0; n < 10; n++) await client.get(ConfigMap, target);
  expect(server.requests).toHaveLength(10);
  // undici reuses a socket only after a turn of the event loop, and opens another one until then.
  expect(server.sockets.size).toBeLessThanOrEqual(2);
});

test("a call takes its connection slot before its token, so a token never waits", async () => {
  const held: (() => void)[] = [];
  await using server = await startWireServer(({ response }) =>
    held.push(() => sendJson(response, 200, object)),
  );
  const { gate, requested } = watchfulGate();
  await using client = clientFor(server, { gate, maxConnections: 2 });
  const calls = Array.from({ length: 5 }, () => client.get(ConfigMap, target));
  await until("two calls reach the server", () => held.length === 2);
  expect(requested).toHaveLength(2);
  for (let answered = 0; answered < 5; answered++) {
    await until("the next call arrives", () => held.length > answered);
    held[answered]?.();
  }
  await Promise.all(calls);
  expect(requested).toHaveLength(5);
});

test("a critical call does not wait behind ordinary ones", async () => {
  await using server = await startWireServer(({ response, url }) => {
    if (url.pathname.endsWith("/lease")) sendJson(response, 200, object);
  });
  await using client = clientFor(server, { maxConnections: 1 });
  const stuck = client.get(ConfigMap, target).catch((error: unknown) => error);
  await until("the slow call arrives", () => server.requests.length === 1);
  await client.scoped({ priority: "critical" }).get(ConfigMap, { namespace: "n", name: "lease" });
  await client.close();
  expect(await stuck).toMatchObject({ code: "cancelled" });
});

test("sends an observer's headers and reports the end of each call to it", async () => {
  const seen: unknown[] = [];
  await using server = await startWireServer(({ response, request }) => {
    seen.push(request.headers["traceparent"]);
    if (seen.length < 4) sendJson(response, 200, object);
    else sendStatus(response, 404, "NotFound");
  });
  await using client = clientFor(server);
  const scoped = client.scoped({
    onSend: ({ verb, method, resource, name }) => {
      seen.push([verb, method, resource, name]);
      const ended = ({ status, reason }: CallRecord) => void seen.push([status, reason]);
      return { headers: { traceparent: "t" }, ended };
    },
  });
  await scoped.get(ConfigMap, target);
  await expect(scoped.get(ConfigMap, target)).rejects.toMatchObject({ status: 404 });
  const sent = ["get", "GET", "configmaps", "a"];
  expect(seen).toEqual([sent, "t", [200, undefined], sent, "t", [404, "NotFound"]]);
});

test("settles each permit once, with the result of the call", async () => {
  await using server = await startWireServer(({ response, url, request }) => {
    if (url.pathname.endsWith("/ok")) sendJson(response, 200, object);
    else if (url.pathname.endsWith("/busy"))
      response
        .writeHead(429, { "retry-after": "3", "content-type": "text/plain" })
        .end("Too many requests");
    else if (url.pathname.endsWith("/cut")) request.socket.destroy();
  });
  const { gate, settled } = watchfulGate();
  await using client = clientFor(server, { gate, requestTimeoutMs: 2_000 });
  const read = (name: string, signal?: AbortSignal) =>
    client
      .get(ConfigMap, { namespace: "n", name }, signal === undefined ? {} : { signal })
      .catch((error: unknown) => error);

  await read("ok");
  const busy = await read("busy");
  expect(isTooManyRequests(busy)).toBe(true);
  expect(busy).toMatchObject({ retryAfterMs: 3_000 });
  expect(await read("silent")).toMatchObject({ code: "kube_timeout" });
  const abort = new AbortController();
  const aborted = read("silent", abort.signal);
  await until("the call arrives", () => server.requests.length === 4);
  abort.abort(new Error("mine"));
  expect(await aborted).toBe(abort.signal.reason);
  expect(settled).toEqual([
    { kind: "response", status: 200 },
    { kind: "response", status: 429, retryAfterMs: 3_000 },
    { kind: "timeout" },
    { kind: "aborted" },
  ]);
});

test("repeats a read if its connection breaks, but not an unguarded write", async () => {
  let breaks = 1;
  await using server = await startWireServer(({ request, response }) => {
    if (breaks-- > 0) request.socket.destroy();
    else sendJson(response, 200, object);
  });
  const { gate, settled } = watchfulGate();
  await using client = clientFor(server, { gate });
  await client.get(ConfigMap, target);
  expect(settled.map(({ kind }) => kind)).toEqual(["network", "response"]);
  breaks = 1;
  const { resourceVersion: _, ...metadata } = object.metadata;
  await expect(
    client.replace(ConfigMap, { ...object, metadata }, { unguarded: true }),
  ).rejects.toMatchObject({ code: "kube_unreachable" });
  expect(server.requests).toHaveLength(3);
});

test("repeats a guarded write if its connection breaks, and does not report its conflict", async () => {
  let breaks = 0;
  let isApplied = false;
  await using server = await startWireServer(({ request, response }) => {
    if (breaks-- > 0) request.socket.destroy();
    else if (isApplied) sendStatus(response, 409, "Conflict");
    else sendJson(response, 200, object);
  });
  await using client = clientFor(server);
  const body = { metadata: { resourceVersion: "7" }, data: { a: "1" } };
  const writes = [
    () => client.patch(ConfigMap, target, { type: "merge", body }),
    () => client.replace(ConfigMap, object),
  ];
  for (const write of writes) {
    [breaks, isApplied] = [1, false];
    await write();
    [breaks, isApplied] = [1, true];
    await expect(write()).rejects.toMatchObject({ code: "kube_unreachable" });
    breaks = 2;
    await expect(write()).rejects.toMatchObject({ code: "kube_unreachable" });
  }
  expect(server.requests).toHaveLength(12);
});

test("a call that the gate rejects is not sent and holds no connection", async () => {
  await using server = await startWireServer(({ response }) => sendJson(response, 200, object));
  let open = false;
  const { gate: passing } = watchfulGate();
  const gate: Gate = {
    admit: (call) =>
      open
        ? passing.admit(call)
        : Promise.reject(new KonvergeError("deferred", "not now", { retryAfterMs: 50 })),
  };
  await using client = clientFor(server, { gate, maxConnections: 1 });
  for (let n = 0; n < 3; n++) {
    await expect(client.get(ConfigMap, target)).rejects.toMatchObject({
      code: "deferred",
      retryAfterMs: 50,
    });
  }
  expect(server.requests).toHaveLength(0);
  open = true;
  await client.get(ConfigMap, target);
});

test("reports every sent call to the scope, with the fields of a record", async () => {
  await using server = await startWireServer(({ response, request }) => {
    if (request.method === "GET") sendJson(response, 200, object);
    else sendStatus(response, 409, "Conflict", { message: "modified" });
  });
  await using client = clientFor(server);
  const records: CallRecord[] = [];
  const scoped = client.scoped({ observe: (record) => records.push(record), fieldManager: "me" });
  await scoped.get(ConfigMap, target);
  await scoped.replace(ConfigMap, object, { subresource: "status" }).catch(() => undefined);
  const common = { resource: "configmaps", namespace: "n", name: "a" };
  expect(records).toMatchObject([
    { ...common, verb: "get", status: 200, resourceVersion: "7" },
    {
      ...common,
      verb: "update",
      subresource: "status",
      status: 409,
      reason: "Conflict",
      fieldManager: "me",
    },
  ]);
  expect(records[0]).not.toHaveProperty("fieldManager");
  expect(server.requests[1]?.url.searchParams.get("fieldManager")).toBe("me");
});

const foreignAnswers: [string, number, Record<string, string>, string, string][] = [
  ["a login page", 200, { "content-type": "text/html" }, "<html>log in</html>", "with HTML"],
  ["a login page as an error", 403, { "content-type": "text/html" }, "<html>", "with HTML"],
  ["a redirect", 302, { location: "https://login/" }, "", "with a redirect to https://login/"],
  ["text", 200, { "content-type": "text/plain" }, "ok", "with no JSON"],
  ["no content type", 200, {}, "{}", "with no JSON"],
  ["half of an object", 200, { "content-type": "application/json" }, "{", "with invalid JSON"],
];
test.each(foreignAnswers)(
  "%s does not count as a response of a healthy server",
  async (_what, status, headers, body, expected) => {
    await using server = await startWireServer(({ response }) => {
      response.writeHead(status, headers).end(body);
    });
    const { gate, settled } = watchfulGate();
    await using client = clientFor(server, { gate });
    const records: CallRecord[] = [];
    const scoped = client.scoped({ observe: (record) => records.push(record) });
    const watched = async () => {
      for await (const event of scoped.watch(ConfigMap)) throw new Error(event.kind);
    };
    const calls = [
      () => scoped.get(ConfigMap, target),
      () => scoped.list(ConfigMap),
      () => scoped.delete(ConfigMap, target),
      () => scoped.serverVersion(),
      // A stream may end in the middle of a line.
      ...(body === "{" ? [] : [watched]),
    ];
    for (const call of calls) {
      const error: unknown = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code: "kube_unreachable" });
      expect(String(error)).toContain(`returned ${status} ${expected}`);
      expect(String(error)).toContain("check the server URL");
    }
    expect(settled).toEqual(calls.map(() => ({ kind: "network" })));
    expect(records.map((record) => record.status)).toEqual(calls.map(() => status));
  },
);

test("a raw call accepts any content", async () => {
  await using server = await startWireServer(({ response }) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<html>");
  });
  const { gate, settled } = watchfulGate();
  await using client = clientFor(server, { gate });
  await expect(client.raw({ method: "GET", path: "/ui" })).resolves.toMatchObject({
    body: "<html>",
  });
  expect(settled).toEqual([{ kind: "response", status: 200 }]);
});

test("scopes nest: signals are combined, other options are replaced", async () => {
  await using server = await startWireServer(() => undefined);
  await using client = clientFor(server);
  const [outer, inner] = [new AbortController(), new AbortController()];
  const scoped = client.scoped({ signal: outer.signal }).scoped({ signal: inner.signal });
  const call = scoped.get(ConfigMap, target).catch((error: unknown) => error);
  await until("the call arrives", () => server.requests.length === 1);
  outer.abort(new Error("outer"));
  expect(await call).toBe(outer.signal.reason);
});

test("a closed client ends its calls and rejects new ones", async () => {
  await using server = await startWireServer(() => undefined);
  const client = clientFor(server);
  const call = client.get(ConfigMap, target).catch((error: unknown) => error);
  await until("the call arrives", () => server.requests.length === 1);
  await client.close();
  expect(await call).toMatchObject({ code: "cancelled" });
  await expect(client.get(ConfigMap, target)).rejects.toMatchObject({ code: "cancelled" });
  await until("no connection is left", () => server.sockets.size === 0);
});

test("calls use the proxy of the kubeconfig", async () => {
  const requested: (string | undefined)[] = [];
  await using proxy = await startWireServer(({ request, response }) => {
    requested.push(request.url);
    sendJson(response, 200, object);
  });
  const kubeconfig = {
    "current-context": "far",
    clusters: [
      { name: "far", cluster: { server: "http://api.invalid:8080/k8s", "proxy-url": proxy.url } },
    ],
    contexts: [{ name: "far", context: { cluster: "far" } }],
  };
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: JSON.stringify(kubeconfig), env: {} }),
    gate: watchfulGate().gate,
    userAgent: "konverge-test/1",
  });
  await client.get(ConfigMap, target);
  await client.close();
  expect(requested).toEqual(["http://api.invalid:8080/k8s/api/v1/namespaces/n/configmaps/a"]);
});

test("a new client certificate gets new connections, while calls on the old ones finish", async () => {
  const held: (() => void)[] = [];
  await using server = await startWireServer(({ response }) => {
    held.push(() => sendJson(response, 200, object));
  });
  let tls = {};
  const client = createKubeClient({
    credentials: {
      server: server.url,
      context: "wire",
      authorize: async () => ({ headers: {}, tls }),
      forget: () => undefined,
    },
    gate: watchfulGate().gate,
    userAgent: "konverge-test/1",
  });
  const old = client.get(ConfigMap, target);
  await until("the first call arrives", () => held.length === 1);
  tls = {};
  const next = client.get(ConfigMap, target);
  await until("the second call arrives", () => held.length === 2);
  expect(server.sockets.size).toBe(2);
  for (const answer of held) answer();
  await Promise.all([old, next]);
  await until("the old connection is closed", () => server.sockets.size === 1);
  await client.close();
});

test("fetches new credentials after a 401", async () => {
  let token = 1;
  await using server = await startWireServer(({ request, response }) => {
    if (request.headers.authorization === "Bearer 2") sendJson(response, 200, object);
    else sendStatus(response, 401, "Unauthorized");
  });
  const client = createKubeClient({
    credentials: {
      server: server.url,
      context: "wire",
      authorize: async () => ({ headers: { Authorization: `Bearer ${token}` }, tls: NO_TLS }),
      forget: () => {
        token += 1;
      },
    },
    gate: watchfulGate().gate,
    userAgent: "konverge-test/1",
  });
  await expect(client.get(ConfigMap, target)).rejects.toSatisfy(isUnauthorized);
  expect((await client.get(ConfigMap, target)).metadata.uid).toBe("u");
  await client.close();
});
