import { KonvergeError } from "@konverge/core";
import { createApi, openQueueAccess, type QueueAccess } from "@konverge/api";
import { problemSchema } from "@konverge/contracts";
import { openGuardControl, type GuardControl } from "@konverge/guard";
import { createControllerRegistry } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { hold, keyOf, useQueues, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
let access: QueueAccess;
let guards: GuardControl;

beforeEach(async () => {
  const redis = harness.target;
  const { prefix } = harness;
  await announce(harness);
  access = openQueueAccess({ redis: harness.apiTarget, prefix, onError: () => undefined });
  guards = openGuardControl({ redis, prefix });
});
afterEach(async () => {
  await Promise.all([access.close(), guards.close()]);
});

type Call = (
  path: string,
  init?: { readonly method?: string; readonly headers?: Record<string, string> },
) => Promise<Response>;

/** Calls with a token of this role. */
async function callAs(role: "viewer" | "operator"): Promise<Call> {
  const { token } = await access.tokens.create({ name: `${role}-1`, role, scope: {} }, "test");
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: "0123456789abcdef",
    cluster: "default",
    onError: (error) => {
      throw error;
    },
  });
  return async (path, { method = "GET", headers = {} } = {}) =>
    await api.fetch(
      new Request(`http://localhost:7070${path}`, {
        method,
        headers: { host: "localhost:7070", authorization: `Bearer ${token}`, ...headers },
      }),
    );
}

async function waitingJob(name = "blue"): Promise<string> {
  const { queue } = await access.find("default", "node-pool");
  await queue.request(keyOf(name), { kind: "cli", by: "test" });
  const [raw] = await access.rawQueues(NODE_POOL);
  const [job] = (await raw?.queue.getJobs(["wait", "prioritized"])) ?? [];
  return job?.id ?? "";
}

async function refused(response: Response): Promise<void> {
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")).toBe("GET, HEAD");
  expect(problemSchema.parse(await response.json()).code).toBe("method_not_allowed");
}

const JOBS = "/jobs/api/queues/node-pool";

test("shows a queue once, also if Redis was away at the first request", async () => {
  const call = await callAs("viewer");
  await waitingJob();
  const away = new KonvergeError("redis_unavailable", "Redis is unavailable");
  vi.spyOn(access, "rawQueues").mockRejectedValueOnce(away);
  const path = "/jobs/api/queues?activeQueue=node-pool&page=1";
  expect((await call(path)).status).toBe(503);
  const [first, second] = await Promise.all([call(path), call(path)]);
  for (const response of [first, second]) {
    expect(await response.json()).toMatchObject({ queues: [{ name: "node-pool" }] });
  }
});

test("viewers look at raw jobs and change nothing", async () => {
  const call = await callAs("viewer");
  const id = await waitingJob();
  const listed = await (await call(`/jobs/api/queues?activeQueue=node-pool&page=1`)).json();
  expect(listed).toMatchObject({ queues: [{ name: "node-pool", readOnlyMode: true }] });
  for (const path of [`${JOBS}/pause`, `${JOBS}/${id}/promote`, `${JOBS}/${id}/retry/failed`]) {
    await refused(await call(path, { method: "PUT" }));
  }
  const { queue } = await access.find("default", "node-pool");
  expect((await queue.getKey(keyOf("blue")))?.requested).toBe(1);
});

test("a page has at most 50 jobs, whatever is asked", async () => {
  const call = await callAs("viewer");
  for (let n = 0; n < 60; n++) await waitingJob(`blue-${n}`);
  for (const [query, jobs] of [
    ["jobsPerPage=100000&page=1", 50],
    ["jobsPerPage=-1&page=x", 10],
    ["jobsPerPage=1e999&page=2", 10],
  ] as const) {
    const response = await call(`/jobs/api/queues?activeQueue=node-pool&${query}`);
    const { queues } = (await response.json()) as { queues: { name: string; jobs: unknown[] }[] };
    expect([query, queues.find(({ name }) => name === "node-pool")?.jobs.length]).toEqual([
      query,
      jobs,
    ]);
  }
  for (const path of [
    "/jobs/api/queues?activeQueue=%25E0%25A4%25A",
    "/jobs/api/queues?activeQueue=%E0%A4%A",
    "/jobs/api/queues?activeQueue=node-pool&status=%00",
  ]) {
    expect((await call(path)).status).toBe(200);
  }
});

test("a button with a malformed name is refused", async () => {
  const call = await callAs("operator");
  const response = await call("/jobs/api/queues/%E0%A4%A/x/promote", { method: "PUT" });
  expect(response.status).toBe(405);
});

test("an operator's retry and promote ask for the object, with its author; the other buttons are refused", async () => {
  const call = await callAs("operator");
  const id = await waitingJob();
  const listed = await (await call("/jobs/api/queues")).json();
  expect(listed).toMatchObject({ queues: [{ name: "node-pool", readOnlyMode: false }] });
  for (const action of ["promote", "retry/failed"]) {
    expect((await call(`${JOBS}/${id}/${action}`, { method: "PUT" })).status).toBe(204);
  }
  const { queue } = await access.find("default", "node-pool");
  const key = await queue.getKey(keyOf("blue"));
  expect(key?.requested).toBe(3);
  expect(key?.triggers.at(-1)).toMatchObject({ kind: "http", by: "operator-1" });
  const [raw] = await access.rawQueues(NODE_POOL);
  expect(await raw?.queue.getJobCountByTypes("wait", "prioritized"), "as one job").toBe(1);
  await until("the audit log has it", async () => {
    const { items } = await access.audit.read({ limit: 10 }, () => true);
    return items.some(({ action, by }) => action === "reconcile" && by === "operator-1");
  });
  for (const path of ["pause", "empty", "retry/failed", "clean/failed", `${id}/clean`, "promote"]) {
    await refused(await call(`${JOBS}/${path}`, { method: "PUT" }));
  }
  expect((await call(`${JOBS}/no-such-job/promote`, { method: "PUT" })).status).toBe(404);
  expect((await call(`/jobs/api/queues/nobody/${id}/promote`, { method: "PUT" })).status).toBe(404);
});

test("jobs lead to the page of their object, and the board to the dashboard", async () => {
  const call = await callAs("viewer");
  await waitingJob();
  const path = "/jobs/api/queues?activeQueue=node-pool&status=latest&page=1&jobsPerPage=10";
  expect(await (await call(path)).json()).toMatchObject({
    queues: [{ jobs: [{ externalUrl: { href: "../objects/default/node-pool/demo/blue" } }] }],
  });
  expect(await (await call("/jobs")).text()).toContain('"url":"../"');
});

test("queues of workflows are there too: a job leads to its run, and is not retried here", async () => {
  const redis = harness.target;
  const { prefix } = harness;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  await registry.announce([], [{ name: "release", version: 1 }]);
  await registry.close();
  const { workflows } = await access.runs("default");
  await workflows.start({ name: "release", version: 1 }, null, { id: "team-a/web" });
  const call = await callAs("operator");
  const name = "workflow.release";
  const path = `/jobs/api/queues?activeQueue=${name}&status=latest&page=1&jobsPerPage=10`;
  const { queues } = (await (await call(path)).json()) as {
    queues: { name: string; jobs: { id: string; externalUrl: { href: string } }[] }[];
  };
  const [job] = queues.find((queue) => queue.name === name)?.jobs ?? [];
  expect(job?.externalUrl.href).toBe("../runs/release/default/team-a%2Fweb");
  const retry = `/jobs/api/queues/${name}/${encodeURIComponent(job?.id ?? "")}/promote`;
  const refusal = await call(retry, { method: "PUT" });
  expect(problemSchema.parse(await refusal.json())).toMatchObject({
    code: "invalid_request",
    detail: expect.stringContaining("konverge run"),
  });
});

test("the board asks no foreign host, and knows the path that a proxy took away", async () => {
  const call = await callAs("viewer");
  const page = await call("/jobs");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
  const text = await page.text();
  expect(text).not.toMatch(/googleapis|gstatic/);
  expect(text).toContain('<base href="/jobs/" />');
  const behind = await call("/jobs", { headers: { "x-forwarded-prefix": "/tools/konverge" } });
  expect(await behind.text()).toContain('<base href="/tools/konverge/jobs/" />');
  const hostile = await call("/jobs", { headers: { "x-forwarded-prefix": '/"><script>' } });
  expect(await hostile.text()).toContain('<base href="/jobs/" />');
});

test("what the board does not have is a problem as everywhere", async () => {
  const call = await callAs("viewer");
  const unknown = await call("/jobs/api/queues/nobody/some-id");
  expect(unknown.status).toBe(404);
  expect(problemSchema.parse(await unknown.json()).code).toBe("not_found");
});

const logsOf = async (call: Call, queue: string, id: string): Promise<string[]> => {
  const response = await call(`/jobs/api/queues/${queue}/${encodeURIComponent(id)}/logs`);
  expect(response.status).toBe(200);
  return (await response.json()) as string[];
};

test("the Logs tab of a job shows the lines of its object's attempts", async () => {
  const call = await callAs("viewer");
  const id = await waitingJob();
  expect(await logsOf(call, "node-pool", id)).toEqual([]);
  const never = hold();
  const line = { at: "2026-01-01T00:00:00.000Z", level: "warn", message: "slow", fields: { n: 1 } };
  workOn(harness.open(), async ({ keepLog }) => {
    await keepLog(JSON.stringify([line]));
    await never.wait();
    return { kind: "done" };
  });
  const lines = await until("the attempt has logged", async () => {
    const found = await logsOf(call, "node-pool", id);
    return found.length > 0 && found;
  });
  expect(lines).toEqual(['2026-01-01T00:00:00.000Z warn [attempt 1] slow {"n":1}']);
  expect(await logsOf(call, "node-pool", "no-such-job")).toEqual([]);
  never.release();
});

test("the Logs tab of a job shows the lines of its run", async () => {
  const redis = harness.target;
  const { prefix } = harness;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  await registry.announce([], [{ name: "release", version: 1 }]);
  await registry.close();
  const never = hold();
  const release = defineWorkflow("release", { version: 1 }, async (w) => {
    w.log.info({}, "begin");
    await w.step("copy", async ({ log }) => {
      log.warn({ disk: 3 }, "slow");
      await never.wait();
    });
  });
  const workflows = openWorkflows({ redis, prefix });
  workflows.work({ workflows: [release] });
  onTestFinished(() => workflows.close());
  await workflows.start(release, null, { id: "team-a/web" });
  const call = await callAs("viewer");
  const [raw] = await access.rawQueues({ cluster: "default", name: "workflow.release" });
  const job = await until("the run is executed", async () => {
    const [active] = (await raw?.queue.getJobs(["active"])) ?? [];
    return active?.id;
  });
  const lines = await until("its log is stored", async () => {
    const found = await logsOf(call, "workflow.release", job);
    return found.length === 2 && found;
  });
  expect(lines.map((line) => line.replace(/^\S+ /, ""))).toEqual([
    "info begin",
    'warn [copy] slow {"disk":3}',
  ]);
  never.release();
});
