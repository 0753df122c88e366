import { once } from "node:events";
import { connect } from "node:net";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
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
