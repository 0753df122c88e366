import { defined } from "@konverge/core";
import { keyListSchema, problemSchema } from "@konverge/contracts";
import { createHistoryWriter } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { useApi, type Call } from "./api-harness.ts";
import { workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { attemptRow, historyBatch } from "../../support/history-batch.ts";

const api = useApi();
const ROWS = 3_000;
const PART = 250;

/** The rows of a worker's history, none of which a search for "nowhere" finds. */
async function remember(): Promise<void> {
  const writer = createHistoryWriter({
    redis: api.queues.target,
    cluster: "default",
    prefix: api.queues.prefix,
    budgetBytes: 100_000_000,
    onError: () => undefined,
  });
  const row = attemptRow({ key: "node-pool/default/nodepools.demo.konverge.dev/blue/a" });
  const rows = Array.from({ length: PART }, () => ({ row, recordBytes: 0 }));
  const batch = historyBatch({ rows });
  for (let written = 0; written < ROWS; written += PART) {
    // A flush on a busy machine may miss its deadline.
    await until("written", () => writer.flush(batch).catch(() => undefined));
  }
  await writer.close();
}

/** Returns the number of requests that an API with 100 tokens and no refill accepts. */
async function accepted(call: Call, path: string, body?: object): Promise<number> {
  const token = await api.token(`t${path.replaceAll(/\W/g, "")}`.slice(0, 90), {
    role: body === undefined ? "viewer" : "operator",
  });
  for (let count = 0; ; count++) {
    const response = await call(path, { token, ...defined({ body }) });
    if (response.status === 200) {
      await response.text();
      continue;
    }
    expect(problemSchema.parse(await response.json())).toMatchObject({ code: "rate_limited" });
    return count;
  }
}

test("a request is charged for its work", async () => {
  await remember();
  const call = api.serve({ isLoopback: false, rate: { ratePerSecond: 1e-3, burst: 100 } });
  const counts: Record<string, number> = {};
  for (const path of [
    "/v1/whoami",
    "/v1/keys?limit=1000",
    "/v1/attempts?name=nowhere",
    "/v1/rollups?controller=node-pool&minutes=1440",
    "/v1/activity?controller=node-pool",
    "/v1/activity",
    "/v1/guards?minutes=60",
    "/v1/contention?hours=24",
    "/v1/overview",
    "/v1/limits",
    "/metrics",
    "/jobs/api/queues",
  ]) {
    counts[path] = await accepted(call, path);
  }
  const count = { action: "pause", dryRun: true, by: "ann", reason: "freeze" };
  counts["/v1/runs/actions"] = await accepted(call, "/v1/runs/actions", count);
  expect(counts).toEqual({
    "/v1/whoami": 100,
    "/v1/keys?limit=1000": 5,
    // 60 of its rows, and 2 of its page.
    "/v1/attempts?name=nowhere": 2,
    "/v1/rollups?controller=node-pool&minutes=1440": 1,
    // 14 for the minutes, 6 for the contention, and 5 for the rows that are searched for errors.
    "/v1/activity?controller=node-pool": 4,
    "/v1/activity": 2,
    "/v1/guards?minutes=60": 15,
    "/v1/contention?hours=24": 4,
    "/v1/overview": 5,
    "/v1/limits": 5,
    "/metrics": 5,
    "/jobs/api/queues": 5,
    "/v1/runs/actions": 1,
  });
});

test("a caller has at most eight searches in progress, and others are served", async () => {
  await remember();
  const call = api.serve({ isLoopback: false });
  const [greedy, other] = [await api.token("greedy"), await api.token("other")];
  const searches = Array.from({ length: 30 }, () =>
    call("/v1/attempts?name=nowhere", { token: greedy }),
  );
  const own = await call("/v1/attempts?name=nowhere", { token: other });
  expect(own.status).toBe(200);
  const statuses = (await Promise.all(searches)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(8);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
});

test("waits share their reads: the number of reads does not grow with the waits", async () => {
  const { queue } = await api.access.find("default", "node-pool");
  const call = api.serve();
  const body = { controller: "node-pool", namespace: "blue", name: "a" };
  const { id } = (await (await call("/v1/reconciles", { body })).json()) as { id: string };
  const original = queue.getRequest.bind(queue);
  let reads = 0;
  let polls = 0;
  queue.getRequest = async (request) => {
    reads++;
    // After the first read of each wait, one read serves all.
    if (reads > 300) polls++;
    return await original(request);
  };
  onTestFinished(() => void (queue.getRequest = original));
  const path = `/v1/reconciles/${encodeURIComponent(id)}?wait=60s`;
  const waits = Array.from({ length: 300 }, () => call(path));
  await expect.poll(() => polls).toBeGreaterThan(3);
  const worker = workOn(queue, () => ({ kind: "done" }));
  const answers = await Promise.all(waits);
  for (const answer of answers) {
    expect(await answer.json()).toMatchObject({ phase: "finished", outcome: "done" });
  }
  await worker.stop();
  expect(reads).toBe(300 + polls);
  expect(polls).toBeLessThan(300);
});

test("a caller has at most 500 waits; nothing is requested beyond them", async () => {
  const call = api.serve({ isLoopback: false });
  const greedy = await api.token("greedy", { role: "operator" });
  const other = await api.token("other", { role: "operator" });
  const ask = (token: string, name: string, wait: number) =>
    call("/v1/reconciles", {
      token,
      body: { controller: "node-pool", namespace: "blue", name },
      headers: { prefer: `wait=${wait}` },
    });
  const { id } = (await (await ask(greedy, "first", 0)).json()) as { id: string };
  const controller = new AbortController();
  const path = `/v1/reconciles/${encodeURIComponent(id)}?wait=60s`;
  const waits = Array.from({ length: 500 }, () =>
    call(path, { token: greedy, signal: controller.signal }),
  );
  const brief = path.replace("60s", "1ms");
  await expect.poll(async () => (await call(brief, { token: greedy })).status).toBe(429);
  expect((await ask(greedy, "second", 20)).status).toBe(429);
  expect((await ask(other, "third", 1)).status).toBe(202);
  const keys = keyListSchema.parse(await (await call("/v1/keys", { token: other })).json());
  expect(keys.items.map(({ key }) => key.split("/")[4])).not.toContain("second");
  controller.abort();
  await Promise.allSettled(waits);
  await expect.poll(async () => (await ask(greedy, "fourth", 1)).status).toBe(202);
});
