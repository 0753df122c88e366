import { createApi, openQueueAccess, type ApiOptions, type QueueAccess } from "@konverge/api";
import { problemSchema, streamEventSchema, type StreamEvent } from "@konverge/contracts";
import { openGuardControl, createGuard, type GuardControl } from "@konverge/guard";
import { createHistoryWriter, type AttemptRow, type HistoryWriter } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { announce } from "../queue/announce.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { attemptRow, historyBatch } from "../../support/history-batch.ts";

const harness = useQueues();
const ORDER = { by: "ada", reason: "a <script>bad</script>\n\nrelease" };
let access: QueueAccess;
let guards: GuardControl;
let writer: HistoryWriter;

beforeEach(async () => {
  const redis = harness.target;
  const { prefix } = harness;
  await announce(harness);
  const onError = () => undefined;
  access = openQueueAccess({ redis: harness.apiTarget, prefix, onError });
  guards = openGuardControl({ redis, prefix });
  writer = createHistoryWriter({ redis, prefix, cluster: "default", budgetBytes: 1e9, onError });
});
afterEach(async () => {
  await Promise.all([access.close(), guards.close(), writer.close()]);
});

/** As workers store attempts that have ended. */
async function finish(names: readonly string[], rest: Partial<AttemptRow> = {}): Promise<void> {
  const rows = names.map((name, index) => ({
    recordBytes: 100,
    row: attemptRow({
      key: `node-pool/default/nodepools.demo.konverge.dev/demo/${name}`,
      epoch: index + 1,
      ...rest,
    }),
  }));
  await writer.flush(historyBatch({ rows, reportAgainMs: 0 }));
}

interface Following {
  readonly response: Response;
  readonly events: (StreamEvent & { readonly id: string })[];
  readonly text: () => string;
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

function serve(options: Partial<ApiOptions> = {}) {
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: undefined,
    cluster: "default",
    onError: () => undefined,
    ...options,
  });
  onTestFinished(() => api.close());
  const call = async (path: string, init: RequestInit = {}, env?: object) =>
    await api.fetch(
      new Request(`http://localhost:7070${path}`, {
        ...init,
        headers: { host: "localhost:7070", ...(init.headers as Record<string, string>) },
      }),
      env,
    );
  /** Reads a stream as it comes. */
  const follow = async (query = "", headers: Record<string, string> = {}): Promise<Following> => {
    const response = await call(`/v1/events${query}`, { headers });
    expect(response.status).toBe(200);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (reader === undefined) throw new Error("no body");
    const events: Following["events"] = [];
    let text = "";
    let read = 0;
    const run = async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        text += value;
        const blocks = text.slice(read).split("\n\n");
        read = text.length - (blocks.pop() ?? "").length;
        for (const block of blocks) {
          const [, id = ""] = /^id: (.*)$/m.exec(block) ?? [];
          const [, type] = /^event: (.*)$/m.exec(block) ?? [];
          const [, data] = /^data: (.*)$/m.exec(block) ?? [];
          if (data === undefined) continue;
          events.push({
            id,
            ...streamEventSchema.parse({ type, data: JSON.parse(data) as unknown }),
          });
        }
      }
    };
    const ended = run();
    const stop = async () => {
      await reader.cancel();
      await ended;
    };
    onTestFinished(stop);
    await until("it begins", () => text.includes("id: "));
    return { response, events, text: () => text, ended, stop };
  };
  return { api, call, follow };
}
const namesOf = ({ events }: Following) =>
  events.map(({ type, data }) => (type === "attempt" ? data.name : type));
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `n-${from + index}`);

test("sends attempts to all readers as they end, without earlier ones", async () => {
  await finish(["before"]);
  const { follow } = serve();
  const [one, other] = [await follow(), await follow()];
  expect(one.response.headers.get("x-accel-buffering")).toBe("no");
  expect(one.text()).toMatch(/^retry: 2000\n/);
  await finish(["a", "b"], { outcome: "rejected", errorCode: "kube_api.Invalid" });
  await until(
    "both receive the events",
    () => one.events.length === 2 && other.events.length === 2,
  );
  expect(one.events).toEqual(other.events);
  expect(one.events[0]).toMatchObject({
    type: "attempt",
    data: {
      key: "node-pool/default/nodepools.demo.konverge.dev/demo/a",
      outcome: "rejected",
      errorCode: "kube_api.Invalid",
    },
  });
});

test("resumes after the last event without gaps or duplicates", async () => {
  const { follow } = serve();
  const first = await follow();
  await finish(range(1, 5));
  await until("five", () => first.events.length === 5);
  await first.stop();
  const at = first.events[1]?.id ?? "";
  await finish(range(6, 1_200));
  // Events continue while it catches up.
  let last = 1_200;
  const [back] = await Promise.all([
    follow("", { "last-event-id": at }),
    (async () => {
      for (; last < 1_500; last += 50) await finish(range(last + 1, last + 50));
    })(),
  ]);
  await until("all", () => back.events.length >= last - 2);
  await finish(["end"]);
  await until("the end", () => namesOf(back).at(-1) === "end");
  expect(namesOf(back)).toEqual([...range(3, last), "end"]);
  // The ID read before the first event is also a valid position to resume from.
  const [, beginning = ""] = /^id: (.*)$/m.exec(back.text()) ?? [];
  expect(beginning).toBe(at);
});

test("sends pauses, releases and guard actions with their authors, but not requests", async () => {
  const { call, follow } = serve();
  const seen = await follow();
  const guard = await createGuard({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w",
    limits: { ratePerSecond: 100 },
  });
  onTestFinished(() => guard.close());
  const post = async (path: string, body: unknown) => {
    const headers = { "content-type": "application/json" };
    const response = await call(path, { method: "POST", headers, body: JSON.stringify(body) });
    expect([path, response.status < 300]).toEqual([path, true]);
  };
  const blue = { controller: "node-pool", namespace: "demo", name: "blue" };
  await post("/v1/reconciles", blue);
  await post("/v1/pauses", { ...blue, ...ORDER });
  await post("/v1/guards/default/isolate", ORDER);
  await until("three", () => seen.events.length === 3);
  const changes = seen.events.filter(({ type }) => type === "change");
  expect(changes.map(({ data }) => data)).toMatchObject([
    { action: "pause", by: "ada", reason: ORDER.reason, namespace: "demo", name: "blue" },
    { action: "guard.isolate", by: "ada", cluster: "default" },
  ]);
  expect(seen.events.find(({ type }) => type === "guard")?.data).toMatchObject({
    cluster: "default",
    transition: { to: "isolated", by: "ada" },
  });
});

test("applies filters and the scope of the token", async () => {
  const { follow } = serve({ isLoopback: false });
  const scope = { namespaces: ["other"] };
  const { token } = await access.tokens.create({ name: "o", role: "viewer", scope }, "ada");
  const { token: all } = await access.tokens.create(
    { name: "a", role: "viewer", scope: {} },
    "ada",
  );
  const asAll = { authorization: `Bearer ${all}` };
  const scoped = await follow("", { authorization: `Bearer ${token}` });
  const byName = await follow("?name=blu", asAll);
  const byOutcome = await follow("?outcome=conflict&controller=node-pool&namespace=demo", asAll);
  const byController = await follow("?controller=other", asAll);
  await finish(["blue"]);
  await finish(["green"], { outcome: "conflict" });
  await finish(["end"], { key: "other/default/nodepools.demo.konverge.dev/other/blu" });
  await until("the last", () => byName.events.length === 2 && scoped.events.length === 1);
  await until("others", () => byOutcome.events.length === 1 && byController.events.length === 1);
  expect([scoped, byName, byOutcome, byController].map(namesOf)).toEqual([
    ["blu"],
    ["blue", "blu"],
    ["green"],
    ["blu"],
  ]);
});

test("sends heartbeats, and ends with the token", async () => {
  const { follow } = serve({ isLoopback: false, heartbeatMs: 50 });
  const { token } = await access.tokens.create({ name: "t", role: "viewer", scope: {} }, "ada");
  const seen = await follow("", { authorization: `Bearer ${token}` });
  await until("comments", () => seen.text().split(": heartbeat").length > 3);
  await access.tokens.revoke("t");
  await expect(seen.ended).resolves.toBeUndefined();
});

test("disconnects slow readers and frees their buffers", async () => {
  const { call } = serve();
  let cut = false;
  const env = { outgoing: { destroy: () => (cut = true) } };
  const slow = await call("/v1/events", {}, env);
  const reader = slow.body?.getReader();
  await reader?.read();
  await finish(["first"]);
  for (let sent = 0; sent < 12 && !cut; sent++) await finish(range(1, 1_000));
  await until("it is cut off", () => cut);
  let read = 0;
  while ((await reader?.read())?.done === false) read++;
  expect(read).toBeLessThanOrEqual(1);
});

test("ends the streams on shutdown", async () => {
  const { api, follow } = serve();
  const seen = await follow();
  api.close();
  await expect(seen.ended).resolves.toBeUndefined();
});

test.each([
  ["a foreign id", "/v1/events", { "last-event-id": "17" }, 422, "invalid_request"],
  ["an empty id", "/v1/events", { "last-event-id": " " }, 422, "invalid_request"],
  ["an unknown cluster", "/v1/events?cluster=nowhere", {}, 404, "not_found"],
  ["an unknown filter", "/v1/events?kind=x", {}, 422, "invalid_request"],
] as const)("rejects %s with a problem", async (_what, path, headers, status, code) => {
  const { call } = serve();
  const response = await call(path, { headers });
  expect([response.status, problemSchema.parse(await response.json()).code]).toEqual([
    status,
    code,
  ]);
});

test("rejects connections over the limits per caller and process with Retry-After", async () => {
  const { call } = serve({ isLoopback: false });
  const headers: Record<string, string>[] = [];
  for (const name of ["a", "b", "c", "d", "e"]) {
    const { token } = await access.tokens.create({ name, role: "viewer", scope: {} }, "ada");
    headers.push({ authorization: `Bearer ${token}` });
  }
  const [first = {}, , , , last = {}] = headers;
  const open: Response[] = [];
  const fill = async (own: Record<string, string>) => {
    for (let i = 0; i < 50; i++) open.push(await call("/v1/events", { headers: own }));
  };
  await fill(first);
  const refused = await call("/v1/events", { headers: first });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "10"]);
  for (const own of headers.slice(1, 4)) await fill(own);
  expect((await call("/v1/events", { headers: last })).status).toBe(429);
  await open[0]?.body?.cancel();
  expect((await call("/v1/events", { headers: last })).status).toBe(200);
});

test("HEAD opens no stream", async () => {
  const { call } = serve();
  for (let i = 0; i < 250; i++) {
    const response = await call("/v1/events", { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  }
  expect((await call("/v1/events")).status).toBe(200);
});

test("a forged Last-Event-ID shows no older changes to others than admins", async () => {
  const { follow } = serve({ isLoopback: false });
  const old = { action: "pause", by: "ada", cluster: "default", reason: "secret-plan" };
  // Half an hour old, as its ID shows.
  const id = `${Date.now() - 30 * 60_000}-0`;
  await harness.redis.xadd(`${harness.prefix}:audit`, id, "e", JSON.stringify(old));
  await access.audit.write({ action: "resume", by: "ada", cluster: "default" });
  const as = async (role: "viewer" | "operator" | "admin", scope = {}) => {
    const name = `${role}-${Object.keys(scope).length}`;
    const { token } = await access.tokens.create({ name, role, scope }, "ada");
    const headers = { authorization: `Bearer ${token}`, "last-event-id": "0-0.0-0.0" };
    const seen = await follow("", headers);
    await until("the new change", () => seen.text().includes('"resume"'));
    return seen.text().includes("secret-plan");
  };
  expect(await as("viewer")).toBe(false);
  expect(await as("operator")).toBe(false);
  expect(await as("admin", { namespaces: ["demo"] })).toBe(false);
  expect(await as("admin")).toBe(true);
});

test("a revoked token ends a stream that is never idle", async () => {
  const { follow } = serve({ isLoopback: false, heartbeatMs: 3_600_000 });
  const { token } = await access.tokens.create({ name: "t", role: "viewer", scope: {} }, "ada");
  const seen = await follow("", { authorization: `Bearer ${token}` });
  let hasEnded = false;
  void seen.ended.then(() => (hasEnded = true));
  await finish(range(1, 200));
  await access.tokens.revoke("t");
  await until("it ends", async () => {
    await finish(range(1, 5));
    return hasEnded;
  });
  expect(seen.text()).not.toContain("heartbeat");
});

test("an expired token ends an idle stream without a heartbeat", async () => {
  const { follow } = serve({ isLoopback: false, heartbeatMs: 3_600_000 });
  const short = { name: "t", role: "viewer", scope: {}, ttlMs: 3_000 } as const;
  const { token } = await access.tokens.create(short, "ada");
  const seen = await follow("", { authorization: `Bearer ${token}` });
  await expect(seen.ended).resolves.toBeUndefined();
});
