import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { createApi, startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished, test } from "vitest";
import { useApi } from "./api-harness.ts";

const api = useApi();
const BODY = { controller: "node-pool", namespace: "blue", name: "a" };

test.each([
  "via",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "fastly-client-ip",
  "x-original-host",
  "x-original-url",
  "x-envoy-external-address",
])("without a token, rejects a request that a proxy marked with %s", async (name) => {
  const call = api.serve();
  expect((await call("/v1/whoami")).status).toBe(200);
  expect((await call("/v1/whoami", { headers: { [name]: "8.8.8.8" } })).status).toBe(403);
});

test.each([
  { origin: "https://ops.example.com", "sec-fetch-site": "same-origin" },
  { origin: "null", "sec-fetch-site": "same-origin" },
  { origin: "http://localhost:7071", "sec-fetch-site": "none" },
  { referer: "https://ops.example.com/", "sec-fetch-site": "same-origin" },
] as Record<string, string>[])(
  "without a token, rejects the page of another host: %o",
  async (headers) => {
    const call = api.serve();
    expect((await call("/v1/reconciles", { body: BODY, headers })).status).toBe(403);
    expect((await call("/v1/keys", { headers })).status).toBe(403);
  },
);

test("without a token, accepts a page of the API and a client that is not a browser", async () => {
  const call = api.serve();
  const headers = { origin: "http://localhost:7070", "sec-fetch-site": "same-origin" };
  expect((await call("/v1/reconciles", { body: BODY, headers })).status).toBe(202);
  expect((await call("/v1/reconciles", { body: BODY })).status).toBe(202);
});

test("without a token, rejects HTTP/1.0, which nginx speaks by default", async () => {
  const running = await startApi({
    settings: {
      ...readSettings({ env: {} }),
      redisUrl: api.queues.url,
      prefix: api.queues.prefix,
      apiPort: 0,
      logLevel: "silent",
    },
    version: "test",
  });
  onTestFinished(() => running.stop());
  const statusOf = async (version: string) => {
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    const lines = [
      "GET /v1/whoami HTTP/",
      version,
      "\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ];
    socket.write(lines.join(""));
    let text = "";
    socket.on("data", (part) => (text += part.toString()));
    await once(socket, "close");
    return text.split(" ")[1];
  };
  expect(await statusOf("1.1")).toBe("200");
  expect(await statusOf("1.0")).toBe("403");
});

test("a refusal is reported and counted; a slow login and a client that disconnects in its body are no errors", async () => {
  const errors: unknown[] = [];
  const refusals: unknown[] = [];
  const metrics = createMetrics({ version: "test" });
  const own = createApi({
    access: api.access,
    guards: api.guards,
    metrics,
    token: "the-token-of-the-configuration",
    cluster: "default",
    onError: (error) => errors.push(error),
    onRefused: (refusal) => refusals.push(refusal),
  });
  const { promise, resolve } = Promise.withResolvers<number>();
  const server = serve({ fetch: own.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) =>
    resolve(port),
  );
  onTestFinished(() => void server.close());
  onTestFinished(() => own.close());
  const port = await promise;
  const url = `http://127.0.0.1:${port}`;
  expect((await fetch(`${url}/v1/keys`)).status).toBe(401);
  expect(refusals).toEqual([{ code: "unauthorized", source: "127.0.0.1" }]);
  const counted = await metrics.text();
  expect(counted).toContain(
    'konverge_api_rejected_requests_total{code="unauthorized",installation="konverge"} 1',
  );
  expect(counted).toContain(
    'konverge_api_rejected_requests_total{code="rate_limited",installation="konverge"} 0',
  );
  // A login that takes longer than a second has no token yet that could have been revoked.
  const slow = request(`${url}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json", "content-length": "42" },
  });
  slow.write('{"token":"the-token-of-the');
  await sleep(1_100);
  slow.end('-configuration"}');
  const [{ statusCode }] = (await once(slow, "response")) as [IncomingMessage];
  expect(statusCode).toBe(200);
  for (let n = 0; n < 5; n++) {
    const socket = connect(port, "127.0.0.1");
    socket.write(
      "POST /v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
    );
    await once(socket, "connect");
    socket.destroy();
    await once(socket, "close");
  }
  // Served after the server has seen the ends of these connections.
  await expect
    .poll(async () => {
      await fetch(`${url}/livez`);
      return await new Promise<number>((done) => server.getConnections((_, count) => done(count)));
    })
    .toBeLessThanOrEqual(1);
  expect(errors).toEqual([]);
});

test("answers are not stored by caches, and say nothing about TLS", async () => {
  const call = api.serve();
  for (const path of ["/v1/whoami", "/v1/nothing", "/v1/openapi.json"]) {
    expect((await call(path)).headers.get("cache-control")).toBe("no-store");
  }
  expect((await call("/")).headers.get("strict-transport-security")).toBe(null);
});
