import { connect } from "node:net";
import { startApi } from "@konverge/api";
import { createApiServer } from "@konverge/apiserver";
import { readSettings } from "@konverge/contracts";
import { createMetrics } from "@konverge/telemetry";
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { startProbeServer } from "../../../libs/worker/src/probe-server.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const queues = useQueues();
console.log(`KONVERGE_TEST_SEED=${seed}`);
const RUNS = isLongRun ? 1_500 : 150;
const NO_ANSWER_MS = 60_000;

/** Targets that a URL parser rejects, or reads as another host. */
const HOSTILE = [
  "//",
  "///",
  "//a:99999",
  "//[",
  "/\\",
  "\\\\",
  "http://[",
  "http://",
  "http://a:b@[::1",
  "*",
  "?",
  "#",
  "%",
  "/%",
  "/%ff%fe",
  "/..//..",
  "/metrics/%",
  "/livez?//[",
  ":",
];
const piece = fc.constantFrom(
  "/",
  "//",
  "\\",
  ":",
  "@",
  "[",
  "]",
  "?",
  "#",
  "%",
  "%00",
  "%zz",
  "..",
  "http:",
  "99999",
  "metrics",
  "v1",
  "api",
  "\u00FF",
);
const target = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...HOSTILE) },
  {
    weight: 2,
    arbitrary: fc.array(piece, { minLength: 1, maxLength: 8 }).map((all) => all.join("")),
  },
);
const method = fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "PUT");

/** Sends one request and returns the status line of its answer; empty if the server closed the connection. */
async function statusLine(port: number, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = "";
  socket.on("data", (part) => {
    text += part.toString("latin1");
    if (text.includes("\r\n")) resolve(text.split("\r\n", 1)[0] ?? "");
  });
  socket.on("close", () => resolve(text));
  socket.setTimeout(NO_ANSWER_MS, () => resolve(`no answer to ${request}`));
  // The server may close the connection while the request is sent.
  socket.on("error", () => undefined);
  socket.write(request, "latin1");
  const line = await promise;
  socket.destroy();
  return line;
}

const settings = () => ({
  ...readSettings({ env: {} }),
  redisUrl: queues.url,
  prefix: queues.prefix,
  metricsPort: 0,
  apiPort: 0,
  logLevel: "silent" as const,
});

/** Every HTTP server of the project, by its name. */
const LISTENERS: Record<string, () => Promise<string>> = {
  async "worker metrics"() {
    const probes = await startProbeServer({
      settings: settings(),
      metrics: createMetrics({ version: "test" }),
      isReady: () => true,
    });
    onTestFinished(() => probes.close());
    return probes.url;
  },
  async "HTTP API"() {
    const api = await startApi({ settings: settings(), version: "test" });
    onTestFinished(() => api.stop());
    return api.url;
  },
  async "embedded API server"() {
    const server = await createApiServer();
    onTestFinished(() => server.close());
    return server.url;
  },
};

test.each(Object.keys(LISTENERS))(
  "%s answers any request target without a server error",
  async (name) => {
    const url = new URL((await LISTENERS[name]?.()) ?? "");
    // In a test, an uncaught exception fails the run; in a process, it ends the process.
    const uncaught: unknown[] = [];
    const note = (error: unknown) => uncaught.push(error);
    process.on("uncaughtException", note);
    onTestFinished(() => void process.off("uncaughtException", note));
    await fc.assert(
      fc.asyncProperty(method, target, async (verb, path) => {
        uncaught.length = 0;
        const request = `${verb} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`;
        expect(await statusLine(Number(url.port), request)).toMatch(/^(HTTP\/1\.1 [2-4]\d\d .*)?$/);
        expect(uncaught).toEqual([]);
      }),
      { seed, numRuns: RUNS, examples: HOSTILE.map((path) => ["GET", path]) },
    );
  },
);
