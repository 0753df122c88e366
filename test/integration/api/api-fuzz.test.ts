import { defined } from "@konverge/core";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { createApi, startApi } from "@konverge/api";
import { problemSchema, readSettings } from "@konverge/contracts";
import { bearerToken, inbound as inboundSource } from "@konverge/engine";
import { createGuard } from "@konverge/guard";
import { createControllerRegistry } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import * as fc from "fast-check";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { announceOpenKinds, WIDGET } from "./announce-open-kinds.ts";
import { useApi } from "./api-harness.ts";
import { requestFor, type Json, type Operation } from "./api-request-arbitrary.ts";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const harness = useApi();
console.log(`KONVERGE_TEST_SEED=${seed}`);
const RUNS = isLongRun ? 300 : 60;
const HANG_MS = 40_000;
const TOKEN = "the-token-of-the-configuration";
/** Below the minute after which Node.js itself closes such connections. */
const OWN_LIMIT_MS = 50_000;

interface Document {
  readonly paths: Record<string, Record<string, Json>>;
  readonly components: { readonly schemas: Json; readonly responses: Record<string, Json> };
}
const document = JSON.parse(readFileSync("docs/openapi.json", "utf8")) as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]): Operation => {
    const body = operation["requestBody"] as
      | { content: Record<string, { schema: Json }> }
      | undefined;
    return {
      id: String(operation["operationId"]),
      method: method.toUpperCase(),
      path,
      parameters: operation["parameters"] as Operation["parameters"],
      body: body?.content["application/json"]?.schema,
      responses: operation["responses"] as Operation["responses"],
    };
  }),
);

const promises = new Map<string, z.ZodType | undefined>();

/** The schema that the document promises for an answer, with the codes of a problem. */
function promised(operation: Operation, status: number): z.ZodType | undefined {
  const id = `${operation.id} ${status}`;
  // Made once: it contains all schemas of the document.
  if (!promises.has(id)) promises.set(id, makePromised(operation, status));
  return promises.get(id);
}

function makePromised({ responses }: Operation, status: number): z.ZodType | undefined {
  const named = responses[status];
  if (named === undefined) return undefined;
  const reference = named["$ref"];
  const response =
    typeof reference === "string"
      ? document.components.responses[reference.split("/").at(-1) ?? ""]
      : named;
  const content = response?.["content"] as Record<string, { schema: Json }> | undefined;
  const schema = Object.values(content ?? {})[0]?.schema;
  if (schema === undefined) return z.unknown();
  const whole = { ...schema, $defs: document.components.schemas };
  const local = JSON.stringify(whole).replaceAll("#/components/schemas/", "#/$defs/");
  return z.fromJSONSchema(JSON.parse(local) as Parameters<typeof z.fromJSONSchema>[0]);
}

/** True if the path has a segment that swallows its neighbors, such as "..": it leads to another route. */
function isElsewhere(path: string): boolean {
  const [sent = ""] = path.split("?", 1);
  const { pathname } = new URL(`http://localhost${sent}`);
  return pathname.split("/").length !== sent.split("/").length;
}

beforeEach(async () => {
  const call = harness.serve();
  const { url: redisUrl, prefix } = harness.queues;
  const guard = await createGuard({
    redis: { url: redisUrl, deadlineMs: PATIENT_MS },
    prefix,
    cluster: "default",
    workerId: "w",
    limits: { ratePerSecond: 100 },
  });
  await guard.close();
  const registry = createControllerRegistry({
    redis: { url: redisUrl, deadlineMs: PATIENT_MS },
    prefix,
    cluster: "default",
  });
  await registry.announce([], [{ name: "roll", version: 1 }]);
  await registry.close();
  await announceOpenKinds(harness.queues, [WIDGET]);
  const { inbound } = inboundSource("blue", { verify: bearerToken(), map: () => null });
  const sources = [{ kind: "inbound", name: "blue", inbound }] as const;
  await announce(harness.queues, [{ ...NODE_POOL, sources }]);
  const { queue } = await harness.access.find("default", "node-pool");
  const worker = workOn(queue, ({ key }) =>
    key.name === "blue" ? { kind: "done" } : { kind: "terminal", error: new Error("<b>no</b>") },
  );
  for (const name of ["blue", "green"]) {
    await call("/v1/reconciles", { body: { controller: "node-pool", namespace: "demo", name } });
  }
  await until("both ended", () => worker.closed.length === 2);
  await worker.stop();
});

/** An API without a rate limit, and the errors that it reports. */
function openApi(token?: string) {
  const errors: unknown[] = [];
  const api = createApi({
    access: harness.access,
    guards: harness.guards,
    metrics: createMetrics({ version: "test" }),
    token,
    cluster: "default",
    rate: { ratePerSecond: 1e9, burst: 1e9 },
    inboundSecrets: { of: () => [TOKEN] },
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => api.close());
  return { api, errors };
}

test.each(operations)("$method $path answers random requests as documented", async (operation) => {
  const { api, errors } = openApi();
  const send = async ({
    path,
    headers,
    body,
  }: {
    path: string;
    headers: Record<string, string>;
    body: string | undefined;
  }) => {
    // Mostly the secret of the source, so that a delivery passes its verification.
    const isDelivery = operation.id === "deliver" && path.length % 4 !== 0;
    const defaults = {
      host: "localhost:7070",
      ...(isDelivery ? { authorization: `Bearer ${TOKEN}` } : {}),
    };
    const request = new Request(`http://localhost:7070${path}`, {
      method: operation.method,
      headers: { ...defaults, ...headers },
      ...defined({ body }),
    });
    return await api.fetch(request);
  };
  await fc.assert(
    fc.asyncProperty(requestFor(operation), async (request) => {
      errors.length = 0;
      const timer = AbortSignal.timeout(HANG_MS);
      const hung = new Promise<never>((_resolve, reject) => {
        timer.addEventListener("abort", () => reject(new Error("it hangs")), { once: true });
      });
      const response = await Promise.race([send(request), hung]);
      expect(errors).toEqual([]);
      if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
        await response.body?.cancel();
        return;
      }
      const text = await response.text();
      // A name with a slash leads to another route, or to none.
      if (response.status === 404 || response.status === 405) {
        const { code } = problemSchema.parse(JSON.parse(text));
        if (code === "route_not_found" || code === "method_not_allowed") return;
      }
      if (isElsewhere(request.path)) return;
      const schema = promised(operation, response.status);
      expect(schema, `${response.status} ${text}`).toBeDefined();
      if (text === "") return;
      const answer: unknown = JSON.parse(text);
      expect(schema?.safeParse(answer).error, text).toBeUndefined();
      if (response.status < 400) return;
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      const problem = problemSchema.parse(answer);
      expect(problem.status).toBe(response.status);
      for (const { pointer } of problem.errors ?? []) expect(pointer).toMatch(/^(\/.*)?$/s);
    }),
    { seed, numRuns: RUNS },
  );
});

/** The routes of the raw jobs, which are not in the document. */
const JOBS = [
  "/jobs",
  "/jobs/api/queues",
  ...["", "/logs", "/promote", "/retry/failed", "/clean"].map(
    (action) => `/jobs/api/queues/{queue}/{job}${action}`,
  ),
  "/jobs/api/queues/{queue}/pause",
  "/jobs/api/redis/stats",
  "/jobs/static/{file}",
];
const TEXT = { type: "string" };
const jobOperations = JOBS.flatMap((path) =>
  ["GET", "PUT", "HEAD", "POST", "DELETE"].map((method): Operation => ({
    id: `${method} ${path}`,
    method,
    path,
    parameters: [
      ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
        name,
        in: "path",
        schema: TEXT,
      })),
      ...["activeQueue", "status"].map((name) => ({ name, in: "query", schema: TEXT })),
      ...["page", "jobsPerPage"].map((name) => ({
        name,
        in: "query",
        schema: { type: "integer", minimum: 0, maximum: 1_000_000 },
      })),
      { name: "x-forwarded-prefix", in: "header", schema: TEXT },
    ],
    body: undefined,
    responses: {},
  })),
);

test("raw jobs answer random requests without a server error", async () => {
  const { api, errors } = openApi(TOKEN);
  const request = fc
    .constantFrom(...jobOperations)
    .chain((operation) =>
      requestFor(operation).map((made) => ({ ...made, method: operation.method })),
    );
  await fc.assert(
    fc.asyncProperty(request, async ({ path, headers, method }) => {
      const response = await api.fetch(
        new Request(`http://localhost:7070${path}`, {
          method,
          headers: { host: "localhost:7070", authorization: `Bearer ${TOKEN}`, ...headers },
        }),
      );
      const text = await response.text();
      expect([method, path, response.status, text.slice(0, 300)]).toSatisfy(
        () => response.status < 500,
      );
      expect(errors).toEqual([]);
      if (response.status < 400 || method === "HEAD") return;
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(problemSchema.parse(JSON.parse(text)).status).toBe(response.status);
    }),
    { seed, numRuns: 10 * RUNS },
  );
});

test("rejects invalid tokens on every operation without effects", async () => {
  const call = harness.serve({ isLoopback: false });
  const revoked = await harness.token("revoked", { role: "admin" });
  await harness.access.tokens.revoke("revoked");
  // Only this file's, because others use the same Redis.
  const listKeys = async () => {
    const keys = await harness.queues.redis.keys(`${harness.queues.prefix}*`);
    // Earlier requests are written to the audit log with a delay of one second.
    return keys.filter((key) => !/:audit(-refused)?(-head|$)/.test(key));
  };
  const before = new Set(await listKeys());
  const wrong = [
    undefined,
    "x",
    revoked,
    `${revoked.slice(0, -2)}xx`,
    "kvg_000000000000_" + "A".repeat(43),
  ];
  // A delivery has a credential of its own.
  const open = ["login", "logout", "deliver"];
  for (const { id, method, path, body } of operations.filter((each) => !open.includes(each.id))) {
    for (const token of wrong) {
      const response = await call(path.replaceAll(/[{}]/g, ""), {
        method,
        token,
        ...(body === undefined ? {} : { body: {} }),
      });
      expect([id, response.status]).toEqual([id, 401]);
      expect(problemSchema.parse(await response.json()).code).toBe("unauthorized");
    }
  }
  // Keys may expire meanwhile.
  expect((await listKeys()).filter((key) => !before.has(key))).toEqual([]);
});

/** The API as a process serves it. */
async function serveOnSocket(): Promise<{ readonly port: number }> {
  const api = await startApi({
    settings: {
      ...readSettings({ env: {} }),
      redisUrl: harness.queues.url,
      prefix: harness.queues.prefix,
      apiPort: 0,
      logLevel: "silent",
    },
    version: "test",
    requestTimeoutMs: 1_000,
  });
  onTestFinished(() => api.stop());
  return { port: Number(new URL(api.url).port) };
}
interface Talk {
  readonly socket: Socket;
  readonly text: () => string;
  readonly closed: () => boolean;
}
function talkTo(port: number): Talk {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  let closed = false;
  socket.on("data", (part) => (text += part.toString("latin1")));
  socket.on("close", () => (closed = true));
  // A server may hang up while we still write.
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return { socket, text: () => text, closed: () => closed };
}
const HEAD =
  "POST /v1/reconciles HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

test("disconnects slow and idle clients while serving others", async () => {
  const { port } = await serveOnSocket();
  const talks = Array.from({ length: 50 }, (_, index) => {
    const talk = talkTo(port);
    if (index % 3 === 0) talk.socket.write("POST /v1/reconciles HTTP/1.1\r\nhost: loc");
    if (index % 3 === 1) talk.socket.write(`${HEAD}content-length: 100\r\n\r\n{"contr`);
    if (index % 3 === 2) talk.socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`);
    return talk;
  });
  const response = await fetch(`http://localhost:${port}/v1/whoami`);
  expect(response.status).toBe(200);
  await until("all are hung up on", () => talks.every(({ closed }) => closed()), OWN_LIMIT_MS);
  for (const { text } of talks) expect(text()).toMatch(/^(HTTP\/1\.1 408 .*)?/s);
});

test("rejects an oversized body before reading it", async () => {
  const { port } = await serveOnSocket();
  const claimed = talkTo(port);
  claimed.socket.write(`${HEAD}content-length: 1000000000\r\n\r\n{`);
  await until("it is refused", () => claimed.text().startsWith("HTTP/1.1 413 "));

  const before = process.memoryUsage().rss;
  const endless = talkTo(port);
  endless.socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
  const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
  let sent = 0;
  const pump = () => {
    while (!endless.closed() && sent < 200e6) {
      sent += 65_536;
      if (!endless.socket.write(chunk)) return void endless.socket.once("drain", pump);
    }
  };
  pump();
  await until("it is refused", () => endless.text().startsWith("HTTP/1.1 413 "));
  await until("it is hung up on", () => endless.closed() || sent >= 200e6, OWN_LIMIT_MS);
  expect(process.memoryUsage().rss - before).toBeLessThan(150e6);
  expect((await fetch(`http://localhost:${port}/v1/whoami`)).status).toBe(200);
});

test("opens no connections for unknown clusters and controllers", async () => {
  const call = harness.serve();
  const { redis, prefix } = harness.queues;
  // Only this process's, because other files use the same Redis.
  const connections = () =>
    process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length;
  const paths = ["keys", "attempts", "contention", "queues", "workers", "pauses", "controllers"];
  // Known clusters and controllers have their connections and keys from then on.
  for (const path of paths) await call(`/v1/${path}?cluster=default`);
  // Earlier requests are written to the audit log with a delay of one second.
  const kept = async () =>
    (await redis.keys(`${prefix}:*`))
      .filter((key) => !/:audit(-refused)?(-head|$)/.test(key))
      .toSorted();
  const [before, keys] = [connections(), await kept()];
  for (let i = 0; i < 300; i++) {
    const cluster = `cluster-${i}`;
    await call("/v1/reconciles", { body: { cluster, controller: `c-${i}`, name: "x" } });
    await call("/v1/reconciles", { body: { controller: `c-${i}`, name: "x" } });
    for (const path of paths) await call(`/v1/${path}?cluster=${cluster}`);
    await call(`/v1/guards/${cluster}`);
  }
  expect(connections() - before).toBeLessThan(5);
  expect((await kept()).filter((key) => !keys.includes(key))).toEqual([]);
});
