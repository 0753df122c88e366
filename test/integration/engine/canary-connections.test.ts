import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { createLocalGate, defined, ensureError, KonvergeError } from "@konverge/core";
import { createGuard } from "@konverge/guard";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { createWorkQueue } from "@konverge/queue";
import { createLogger } from "@konverge/telemetry";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ended, useWorkflows } from "../workflow/workflow-harness.ts";
import { keyOf } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

/** P12: credentials for Redis and API servers never appear in errors, logs or the journal of a run. */

const CANARY = "canary-of-a-connection-5Tz";
/** Not secret: data to store. It belongs in Redis, but not in logs. */
const STORED = "what-a-step-was-given-3Hp";

let server: RunningRedis;
let lines: string[];
let errors: Error[];
let closers: (() => Promise<unknown>)[];
beforeEach(async () => {
  server = await startRedis();
  lines = [];
  errors = [];
  closers = [];
});
afterEach(async () => {
  await Promise.all(closers.map((close) => close()));
  await server.stop();
});

/** The log format of a Konverge process. */
function reported(error: unknown): void {
  const log = createLogger({
    service: "test",
    version: "test",
    level: "trace",
    destination: { write: (line: string) => void lines.push(line) },
  });
  errors.push(ensureError(error));
  log.warn({ err: error }, "workflow error");
}

function expectClean(needle: string, expected: RegExp): void {
  const texts = [
    ...lines,
    ...errors.map((error) => inspect(error, { depth: 20, showHidden: true })),
  ];
  for (const text of texts) expect(text).not.toContain(needle);
  // Otherwise nothing failed, and the test checked nothing.
  expect(texts.some((text) => expected.test(text))).toBe(true);
}

const echo = defineWorkflow("echo", { version: 1 }, async (w, text: string) => {
  await w.step("echo", async () => text);
});
const admin = async (work: (redis: Redis) => Promise<unknown>, password?: string) => {
  const redis = new Redis({ port: server.port, ...defined({ password }) });
  await work(redis);
  await redis.quit();
};

test("keeps a password that Redis rejects out of errors and logs", async () => {
  await admin((redis) => redis.config("SET", "requirepass", "another"));
  const target = { url: `redis://:${CANARY}@127.0.0.1:${server.port}` };
  const workflows = openWorkflows({ redis: target, onError: reported });
  closers.push(() => workflows.close());
  workflows.work({ workflows: [echo] });
  await workflows.start(echo, STORED).catch(reported);
  const queue = createWorkQueue({
    redis: target,
    controller: "c",
    cluster: "default",
    onError: reported,
  });
  closers.push(() => queue.close());
  queue.work({
    workerId: "test",
    concurrency: 1,
    handle: async () => ({ outcome: { kind: "done" } }),
    onError: reported,
  });
  await queue.request(keyOf("a"), { kind: "http" }).catch(reported);
  await createGuard({ redis: target, cluster: "default", workerId: "w" })
    .then((guard) => guard[Symbol.asyncDispose]())
    .catch(reported);
  const nodes = openWorkflows({
    redis: { url: target.url.replace("redis:", "redis+cluster:") },
    onError: reported,
  });
  closers.push(() => nodes.close());
  await nodes.start(echo, STORED).catch(reported);
  await until("workers report errors too", () => errors.length > 8);
  expectClean(CANARY, /WRONGPASS/);
  expectClean(STORED, /WRONGPASS/);
});

test("keeps data that a full Redis could not store out of errors and logs", async () => {
  const workflows = openWorkflows({
    redis: { url: `redis://127.0.0.1:${server.port}` },
    onError: reported,
  });
  closers.push(() => workflows.close());
  const { id } = await workflows.start(echo, STORED);
  await admin((redis) => redis.config("SET", "maxmemory", "1"));
  workflows.work({ workflows: [echo] });
  await workflows.start(echo, STORED).catch(reported);
  await workflows.signal({ workflow: echo.name, id }, "go", { payload: STORED }).catch(reported);
  await until("the worker reports errors too", () => errors.length > 3);
  expectClean(STORED, /OOM/);
  await admin((redis) => redis.config("SET", "maxmemory", "0"));
  expect(await ended(workflows, echo, id)).toMatchObject({ status: "done" });
});

test("reports an invalid URL without its text", () => {
  for (const url of [
    `redis://:${CANARY}@host:port:1`,
    `redis+cluster://user:${CANARY}@`,
    `http://${CANARY}@x`,
    `redis+sentinel://:${CANARY}@a:b:c`,
  ]) {
    try {
      openWorkflows({ redis: { url } });
      reported(new Error(`taken: ${url}`));
    } catch (error) {
      reported(error);
    }
  }
  expectClean(CANARY, /invalid Redis URL/);
});

const harness = useWorkflows();

test("keeps token and proxy of an API server out of the journal for every failure of a verb", async () => {
  const unauthorized = createServer((_, response) => {
    const status = { kind: "Status", status: "Failure", code: 401, reason: "Unauthorized" };
    response.writeHead(401, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...status, apiVersion: "v1", message: "Unauthorized" }));
  });
  await new Promise<void>((resolve) => unauthorized.listen(0, "127.0.0.1", resolve));
  closers.push(async () => unauthorized.close());
  const { port } = unauthorized.address() as AddressInfo;
  const unused = "127.0.0.1:1";
  const clusters = {
    refusing: { server: `http://127.0.0.1:${port}` },
    away: { server: `http://${unused}` },
    behind: { server: `https://${unused}`, "proxy-url": `http://user:${CANARY}@${unused}` },
  };
  const clientOf = (cluster: object) =>
    createKubeClient({
      credentials: loadKubeCredentials({
        kubeconfigText: JSON.stringify({
          apiVersion: "v1",
          kind: "Config",
          clusters: [{ name: "c", cluster }],
          users: [{ name: "u", user: { token: CANARY } }],
          contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
          "current-context": "x",
        }),
      }),
      gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
      userAgent: "konverge-test/1",
    });
  const clients = Object.fromEntries(
    Object.entries(clusters).map(([name, cluster]) => [name, clientOf(cluster)]),
  );
  closers.push(() => Promise.all(Object.values(clients).map((client) => client.close())));
  const attempts = { attempts: 1 };
  const reading = defineWorkflow("reading", { version: 1 }, async (w) => {
    for (const name of Object.keys(clusters)) {
      await w
        .step(
          name,
          async (k) => {
            try {
              await k
                .on(name)
                .get({ apiVersion: "v1", kind: "ConfigMap", namespace: "d", name: "n" });
            } catch (error) {
              // Throttled calls are retried forever; here the error is final.
              reported(error);
              throw new KonvergeError("step_failed", ensureError(error).message, { cause: error });
            }
          },
          { retry: attempts },
        )
        .catch(() => undefined);
    }
  });
  const runs = harness.openRuns();
  const client = async (name: string) => {
    const found = clients[name];
    if (found === undefined) throw new Error(`no cluster ${name}`);
    return found;
  };
  runs.work({ workflows: [reading], workerId: "test", clusters: { home: "refusing", client } });
  const { id } = await runs.start(reading, undefined);
  await ended(runs, reading, id);
  const steps = await runs.steps({ workflow: reading.name, id });
  expect(steps.map(({ name, error }) => [name, error?.code])).toEqual(
    Object.keys(clusters).map((name) => [name, "step_failed"]),
  );
  expect(JSON.stringify(steps)).not.toContain(CANARY);
  expectClean(CANARY, /kube_unreachable|Unauthorized/);
});
