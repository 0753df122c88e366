import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { expectBound, monotonicMs, type SeenCall } from "./guard-harness.ts";
import { Child } from "../../support/child.ts";

const EXAMPLE = fileURLToPath(
  new URL("../../../apps/examples/src/guarded-fetch.ts", import.meta.url),
);
/** The limits of the example. */
const RATE = 50;
const BURST = 60;

const PROCESSES = 3;

/** Writes into each request from which process it is and when it was allowed, which is when the guard calls `fetch`. */
const STAMP = `
  const { fetch } = globalThis;
  globalThis.fetch = (input, init) => {
    const allowedMs = Number(process.hrtime.bigint()) / 1e6;
    return fetch(input, { ...init, headers: { "x-worker": process.pid, "x-allowed-ms": allowedMs } });
  };
`;

/** An API that answers 503 to some calls in the middle. Its first answers wait until all processes have called. */
async function startApi(isBroken: (call: number) => boolean) {
  const calls: SeenCall[] = [];
  const everybody = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    calls.push({
      worker: String(request.headers["x-worker"]),
      allowedMs: Number(request.headers["x-allowed-ms"]),
      arrivedMs: monotonicMs(),
      endedMs: Infinity,
    });
    const status = isBroken(calls.length) ? 503 : 200;
    if (new Set(calls.map(({ worker }) => worker)).size === PROCESSES) everybody.resolve();
    void everybody.promise.then(() => response.writeHead(status).end());
  });
  // A connection that is kept must not be closed under a call that is being sent.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, calls };
}

async function runExample(
  url: string,
  count: number,
): Promise<{ permits: number; breaker: string }> {
  await using child = new Child([
    `--import=data:text/javascript,${encodeURIComponent(STAMP)}`,
    EXAMPLE,
    url,
    String(count),
  ]);
  expect(await child.exited).toEqual([0, null]);
  return JSON.parse(child.output.join("\n")) as { permits: number; breaker: string };
}

test("P5, P6: three processes share one rate and one breaker through fetch", async () => {
  const api = await startApi((call) => call > 60 && call <= 78);
  const reports = await Promise.all(
    Array.from({ length: PROCESSES }, () => runExample(api.url, 40)),
  );
  expect(reports.reduce((sum, { permits }) => sum + permits, 0)).toBe(api.calls.length);
  // fetch does not throw for a 503, so each of the 120 was sent once; the breaker admitted few calls in between.
  expect(api.calls).toHaveLength(120);
  expect(reports.map(({ breaker }) => breaker)).toEqual(["closed", "closed", "closed"]);
  expectBound(api.calls, { ratePerSecond: RATE, burst: BURST });
});
