import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contentionReportSchema, overviewSchema, type Overview } from "@konverge/contracts";
import { createControllerRegistry, durationCounter, openNotificationStore } from "@konverge/queue";
import { defined, TerminalError } from "@konverge/core";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../queue/announce.ts";
import { useApi } from "./api-harness.ts";
import { workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { attemptRow, historyBatch, openHistoryWriter } from "../../support/history-batch.ts";

const api = useApi({ announces: false });
const harness = api.queues;

const KEY = "node-pool/default/nodepools.demo.konverge.dev/demo/blue";
const ORDER = { by: "ada", reason: "a bad release" };
const LOOP = {
  kind: "selfTriggered",
  count: 20,
  step: 1,
  sinceMs: 1,
  paths: ["nodepools.demo.konverge.dev spec.size"],
  managers: [],
  worker: "w-1",
  protection: "report",
} as const;
const OTHER_KEY = "node-pool/default/nodepools.demo.konverge.dev/demo/red";
const POLLED_KEY = "node-pool/default/nodepools.demo.konverge.dev/demo/green";
const OBJECT = "nodepools.demo.konverge.dev/demo/blue";

function call(path: string, { token, ...options }: { token?: string; pages?: string } = {}) {
  return api.serve({ token, ...options })(path);
}

async function overview(token?: string): Promise<Overview> {
  const response = await api.serve()("/v1/overview", defined({ token }));
  expect(response.status).toBe(200);
  return overviewSchema.parse(await response.json());
}

/** A controller that is known, with a live worker or without. */
async function announce({ live }: { readonly live: boolean }): Promise<void> {
  const registry = createControllerRegistry({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
  });
  await registry.announce([NODE_POOL]);
  onTestFinished(() => registry.close());
  if (!live) return;
  const stop = registry.heartbeat({
    workerId: "w-1",
    controllers: ["node-pool"],
    definitions: {},
    role: "all",
    version: "test",
    startedAt: "2026-01-01T00:00:00Z",
    host: "here",
  });
  onTestFinished(stop);
  await until("the worker lives", async () => (await api.access.workers("default")).length === 1);
}

async function remember(options: {
  readonly outcomes?: Readonly<Record<string, number>>;
  readonly conflicts?: number;
  readonly loopUntilMs?: number;
}): Promise<void> {
  const { outcomes = {}, conflicts = 0, loopUntilMs } = options;
  const writer = openHistoryWriter(harness);
  const counts = Object.entries(outcomes).map(([name, count]) => [`outcome.${name}`, count]);
  const thisMinute = Math.floor(Date.now() / 60_000);
  await writer.flush(
    historyBatch({
      rows: [10, 20, 30, 400].map((durationMs, epoch) => ({
        recordBytes: 100,
        row: attemptRow({ key: KEY, epoch, durationMs, writes: 0, calls: 1 }),
      })),
      contention:
        conflicts === 0
          ? []
          : [
              {
                object: OBJECT,
                conflicts,
                pairs: [
                  {
                    kind: "takeover",
                    manager: "argocd-controller",
                    path: "spec.weight",
                    count: conflicts,
                  },
                ],
              },
            ],
      wasted:
        conflicts === 0
          ? []
          : [{ object: OBJECT, controller: "node-pool", minute: thisMinute, writes: conflicts }],
      rollups: [
        {
          controller: "node-pool",
          minute: thisMinute,
          counts: {
            ...(Object.fromEntries(counts) as Record<string, number>),
            ...(conflicts + counts.length === 0
              ? {}
              : { [durationCounter(30)]: 98, [durationCounter(400)]: 2 }),
          },
        },
      ],
      loops:
        loopUntilMs === undefined
          ? new Map()
          : new Map([
              [OTHER_KEY, JSON.stringify({ ...LOOP, untilMs: loopUntilMs })],
              [POLLED_KEY, JSON.stringify({ ...LOOP, kind: "requeue", untilMs: loopUntilMs })],
            ]),
    }),
  );
}

const codesOf = ({ problems }: Overview) => problems.map(({ code }) => code);

test("reports no controllers before the first worker starts", async () => {
  expect(await overview()).toMatchObject({
    summary: "No controllers or workflows found.",
    problems: [],
    controllers: [],
  });
});

test("summarizes a cluster without problems and lists its controllers", async () => {
  await announce({ live: true });
  await remember({ outcomes: { done: 7, conflict: 2, retry: 1 } });
  const answer = await overview();
  expect(answer).toMatchObject({
    summary: "No problems: 1 controller on 1 worker.",
    problems: [],
    clusters: ["default"],
    controllers: [{ name: "node-pool", workers: 1, waiting: 0, deadLetters: 0 }],
  });
  const [{ p50Ms, p99Ms, minutes } = { p50Ms: 0, p99Ms: 0, minutes: [] }] = answer.controllers;
  expect(Math.abs((p50Ms ?? 0) / 30 - 1)).toBeLessThanOrEqual(0.1);
  expect(Math.abs((p99Ms ?? 0) / 400 - 1)).toBeLessThanOrEqual(0.1);
  expect(minutes).toHaveLength(60);
  expect(minutes.filter(({ ok }) => ok > 0)).toEqual([{ ok: 7, conflict: 2, failed: 1 }]);
});

test("lists undelivered audit entries and notifications, but not to callers with a scope", async () => {
  await announce({ live: true });
  const { redis, prefix, target } = harness;
  const hour = 3_600_000;
  const name = "http https://audit.example.com/";
  // Chained, and from an hour ago.
  const id = `${Date.now() - hour}-0`;
  await redis.xadd(`${prefix}:audit`, id, "e", "{}", "n", "1", "p", "", "h", "x");
  await redis.hset(
    `${prefix}:audit-targets`,
    name,
    Date.now(),
    "file /gone",
    Date.now() - 2 * hour,
  );
  await redis.hset(`${prefix}:audit-export/${encodeURIComponent(name)}`, {
    lost: 3,
    lostMs: Date.now() - hour,
  });
  const store = openNotificationStore({
    redis: target,
    prefix,
    cluster: "default",
    onError: (error) => expect.unreachable(error.message),
  });
  onTestFinished(() => store.close());
  await store.lead("slack", "p", 60_000);
  const message = {
    id: "m",
    receiver: "slack",
    subscription: "slack",
    format: "json",
    state: "waiting",
    createdAtMs: Date.now() - hour,
    deadlineMs: Date.now() + hour,
    groups: [],
    examples: [],
    tries: 4,
    lastTries: [{ atMs: Date.now(), status: 503 }],
  } as const;
  await store.compose("p", { subscription: "slack", changes: new Map(), message });
  expect((await overview()).problems).toMatchObject([
    { code: "audit_not_delivered", subject: "http", since: expect.any(String) as string },
    { code: "audit_not_delivered", subject: "http", count: 3 },
    { code: "notification_failing", subject: "slack", cause: "The receiver answered 503" },
  ]);
  const all = await api.token("all");
  const limited = await api.token("limited", { scope: { namespaces: ["demo"] } });
  expect(codesOf(await overview(all))).toHaveLength(3);
  expect(codesOf(await overview(limited))).toEqual([]);
  await store.record("p", { ...message, state: "sent", endedAtMs: Date.now() });
  expect(codesOf(await overview(all))).toEqual(["audit_not_delivered", "audit_not_delivered"]);
});

test("lists current problems, most severe first", async () => {
  await announce({ live: true });
  await remember({
    outcomes: { done: 5, retry: 5, lost: 1 },
    conflicts: 20,
    loopUntilMs: Date.now() + 60_000,
  });
  const { queue } = await api.access.find("default", "node-pool");
  await queue.control.pause({ kind: "namespace", namespace: "demo" }, ORDER);
  const answer = await overview();
  expect(codesOf(answer)).toEqual(["failing", "lost", "contention", "loop", "paused"]);
  expect(answer.summary).toBe("No errors, 4 warnings.");
  expect(answer.problems.map(({ message }) => message)).toEqual([
    "node-pool: 6 of 11 attempts failed in 5 minutes",
    "node-pool: 1 attempt lost its worker in the last hour",
    expect.stringMatching(
      /^argocd-controller and node-pool overwrite each other's spec.weight of demo\/blue: \d+ times a minute$/,
    ),
    "node-pool triggers itself on demo/red",
    "node-pool: demo is paused by ada: a bad release",
  ]);
  expect(answer.problems[3]).toMatchObject({
    key: OTHER_KEY,
    cause: "Its write of spec.size triggers the next attempt",
    consequence: "Each write starts another attempt. Its attempts are not throttled.",
    action: "Write spec.size only if its value differs",
  });
  expect(answer.problems[2]).toMatchObject({
    key: KEY,
    cause: "Both write spec.weight with different values",
    consequence: "20 writes without effect in the last hour.",
    action: expect.stringContaining("Give spec.weight one owner"),
  });
});

test("a failing controller keeps its cause while others fill the newest attempts", async () => {
  await announce({ live: true });
  await remember({ outcomes: { retry: 5 } });
  const writer = openHistoryWriter(harness);
  const failed = {
    outcome: "retry",
    errorCode: "Error",
    errorMessage: "no route to host",
  } as const;
  const busy = KEY.replace("node-pool", "busy");
  // The newest 1,000 attempts of the cluster are sampled.
  for (const rows of [
    [attemptRow({ key: KEY, epoch: 9, ...failed })],
    Array.from({ length: 1_100 }, (_, epoch) => attemptRow({ key: busy, epoch })),
  ]) {
    await writer.flush(historyBatch({ rows: rows.map((row) => ({ recordBytes: 100, row })) }));
  }
  const { problems } = await overview();
  expect(problems.find(({ code }) => code === "failing")).toMatchObject({
    cause: expect.stringContaining("no route to host"),
  });
});

test("reports work without a worker as an error", async () => {
  await announce({ live: false });
  const { queue } = await api.access.find("default", "node-pool");
  const key = {
    controller: "node-pool",
    cluster: "default",
    resource: "nodepools",
    group: "demo.konverge.dev",
    namespace: "demo",
    name: "blue",
  };
  await queue.request(key, { kind: "cli", by: "test" });
  const answer = await overview();
  expect(codesOf(answer)).toEqual(["no_workers"]);
  expect(answer.problems[0]).toMatchObject({
    consequence: "Requests stay queued; none is lost.",
    action: expect.stringContaining("konverge worker"),
    symptoms: [{ code: "unserved", controller: "node-pool" }],
  });
  expect(answer.summary).toBe("1 error.");
  expect(answer.controllers[0]?.oldestRequestAgeMs).toBeGreaterThanOrEqual(0);
  const worker = workOn(queue, () => ({ kind: "terminal", error: new Error("cannot") }));
  await until("it is dead", () => worker.closed.length === 1);
  const dead = (await overview()).problems[1];
  expect(dead).toMatchObject({
    code: "dead_letters",
    message: "node-pool: 1 dead-lettered key",
    cause: "1x cannot",
    action: expect.stringContaining("konverge dead-letter release node-pool"),
  });
  expect(Date.now() - Date.parse(dead?.since ?? "")).toBeLessThan(3_600_000);
});

test("ranks objects by wasted writes per minute and counts those that are not listed", async () => {
  await announce({ live: true });
  const writer = openHistoryWriter(harness);
  const now = Math.floor(Date.now() / 60_000);
  const wasted = Array.from({ length: 25 }, (_, at) => ({
    object: `nodepools.demo.konverge.dev/demo/pool-${at}`,
    controller: "node-pool",
    minute: now,
    writes: 100 + at,
  }));
  const old = {
    ...wasted[0],
    object: "nodepools.demo.konverge.dev/demo/old",
    controller: "node-pool",
  };
  await writer.flush(
    historyBatch({ wasted: [...wasted, { ...old, minute: now - 40, writes: 5_000 }] }),
  );
  const response = await call("/v1/contention");
  const { episodes, moreEpisodes } = contentionReportSchema.parse(await response.json());
  expect(episodes).toHaveLength(20);
  expect(moreEpisodes).toBe(6);
  expect(episodes.slice(0, 2)).toMatchObject([
    { name: "pool-24", controller: "node-pool", kind: "conflict", wastedWrites: 124 },
    { name: "pool-23" },
  ]);
  expect(episodes[0]?.minutes.reduce((sum, each) => sum + each, 0)).toBe(124);
  expect((await overview()).problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("demo/pool-24"),
    expect.stringContaining("demo/pool-23"),
    expect.stringContaining("demo/pool-22"),
    "17 more objects with contention",
  ]);
});

test("lists every pause", async () => {
  await announce({ live: true });
  const { queue } = await api.access.find("default", "node-pool");
  for (const namespace of ["a", "b", "c", "d"]) {
    await queue.control.pause({ kind: "namespace", namespace }, ORDER);
  }
  const paused = (await overview()).problems;
  expect(paused.map(({ message }) => message)).toEqual(
    ["a", "b", "c", "d"].map((name) => `node-pool: ${name} is paused by ada: a bad release`),
  );
  expect(paused.every(({ since }) => since !== undefined)).toBe(true);
});

test("lists workflows and reports blocked, failed and unserved runs", async () => {
  const redis = harness.target;
  const { prefix } = harness;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  const runs = openWorkflows({ redis, prefix });
  onTestFinished(async () => {
    await Promise.all([runs.close(), registry.close()]);
  });
  const release = defineWorkflow("release", { version: 2 }, async (w, fails: boolean) => {
    await w.step("publish", () => {
      if (fails) throw new TerminalError("the disk is full");
    });
    await w.signal("approve");
  });
  const inStatus = (id: string, status: string) =>
    until(`${id} is ${status}`, async () => {
      return (await runs.get({ workflow: "release", id }))?.status === status;
    });
  await registry.announce([], [release]);
  await runs.start(release, false, { id: "waits" });
  const alone = await overview();
  expect(alone.summary).toBe("1 error.");
  expect(alone.problems).toEqual([
    {
      code: "unserved",
      level: "error",
      subject: "release",
      message: "release: 1 run has not ended and no worker runs the workflow",
      cause: "No live worker has release in its configuration",
      consequence: "Runs are kept and continue when a worker starts.",
      action: "Start a worker with the configuration of the workflow",
      workflow: "release",
    },
  ]);

  const heartbeat = registry.heartbeat({
    workerId: "w-1",
    controllers: [],
    definitions: {},
    workflows: { release: 2 },
    role: "all",
    version: "test",
    startedAt: "2026-01-01T00:00:00Z",
    host: "here",
  });
  onTestFinished(heartbeat);
  runs.work({ workflows: [release] });
  await inStatus("waits", "waiting");
  await until("the worker lives", async () => (await api.access.workers("default")).length === 1);
  expect(await overview()).toMatchObject({
    summary: "No problems: 1 workflow on 1 worker.",
    problems: [],
    workflows: [{ name: "release", version: 2, workers: 1, runs: { waiting: 1, failed: 0 } }],
  });

  await runs.start(release, true, { id: "team/fails" });
  await runs.start({ name: "release", version: 9 }, false, { id: "old" });
  await inStatus("team/fails", "failed");
  await inStatus("old", "blocked");
  const { summary, problems } = await overview();
  expect(summary).toBe("1 error and 1 warning.");
  expect(problems).toMatchObject([
    {
      code: "run_blocked",
      run: "release/default/old",
      message: "release: old is blocked",
      since: expect.any(String),
      cause: expect.stringContaining("version 9"),
      action: expect.stringContaining("konverge run retry release/default/old"),
    },
    {
      code: "run_failed",
      run: "release/default/team/fails",
      message: "release: team/fails failed",
      since: expect.any(String),
      cause: 'step "publish" failed: the disk is full',
      consequence: "Failed runs have ended. Steps with an undo were undone.",
    },
  ]);

  for (const id of ["a", "b", "c"]) {
    await runs.start({ name: "release", version: 9 }, false, { id });
    await inStatus(id, "blocked");
  }
  expect((await overview()).problems[0]).toMatchObject({
    code: "run_blocked",
    level: "error",
    message: "release: 4 runs are blocked",
    cause: expect.stringMatching(/^4x .* version 9/),
    subject: "release",
    count: 4,
    workflow: "release",
  });
});

test("a run whose undo is tried again remains one problem", async () => {
  const redis = harness.target;
  const { prefix } = harness;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  const runs = openWorkflows({ redis, prefix });
  const retried = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let tries = 0;
  onTestFinished(async () => {
    released.resolve();
    await Promise.all([runs.close(), registry.close()]);
  });
  const rollout = defineWorkflow("rollout", { version: 1 }, async (w) => {
    await w.step("create pool", () => 1, {
      undo: async () => {
        tries += 1;
        if (tries > 1) {
          retried.resolve();
          await released.promise;
        }
        throw new TerminalError("the pool has a finalizer");
      },
    });
    throw new TerminalError("the quota is 0");
  });
  const ref = { workflow: "rollout", id: "kept" };
  const blocked = async () => {
    const { problems } = await overview();
    return problems.find(({ code }) => code === "run_blocked");
  };
  await registry.announce([], [rollout]);
  runs.work({ workflows: [rollout] });
  await runs.start(rollout, undefined, { id: "kept" });
  const first = await until("the run is blocked", blocked);
  expect(first).toMatchObject({ run: "rollout/default/kept", since: expect.any(String) });

  await runs.retry(ref);
  await retried.promise;
  expect((await runs.get(ref))?.status).toBe("compensating");
  expect(await blocked()).toEqual(first);
  released.resolve();
  await until("the run is blocked again", async () => {
    return (await runs.get(ref))?.status === "blocked";
  });
  expect(await blocked()).toEqual(first);
});

const HTML = `<base href="./" /><meta name="konverge" content="{}" />`;

async function makePages(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-pages-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "index.html"), HTML);
  await writeFile(join(folder, "assets", "index-1a2b.js"), "console.log(1);\n");
  return folder;
}

test("serves a page per view with a relative base", async () => {
  const pages = await makePages();
  for (const [path, up] of [
    ["/", "./"],
    ["/attempts?name=blue", "./"],
    ["/objects/default/node-pool/demo/blue", "./../../../../"],
    ["/runs/release/default/team%2Fweb", "./../../../"],
  ] as const) {
    const response = await call(path, { pages });
    expect(response.status, path).toBe(200);
    const text = await response.text();
    expect(text).toContain(`<base href="${up}"`);
    expect(text).toContain(
      'content="{&quot;cluster&quot;:&quot;default&quot;,&quot;role&quot;:&quot;admin&quot;}"',
    );
    const policy = response.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain("unsafe");
  }
  expect((await call("/nothing", { pages })).status).toBe(404);
});

test("an address without a view shows the page in browsers only, with and without a token", async () => {
  const pages = await makePages();
  const html = { accept: "text/html,application/xhtml+xml" };
  for (const isLoopback of [true, false]) {
    const serve = api.serve({ pages, isLoopback });
    const found = await serve("/nothing/at/all", { headers: html });
    expect([found.status, found.headers.get("content-type")]).toEqual([
      404,
      "text/html; charset=UTF-8",
    ]);
    expect(found.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(await found.text()).toContain('<base href="./../../"');
    for (const path of ["/v1/nothing", "/assets/nothing.js", "/jobs/nothing"]) {
      const { headers } = await serve(path, { headers: html });
      expect(headers.get("content-type"), path).not.toContain("text/html");
    }
    const other = await serve("/nothing");
    expect(other.headers.get("content-type")).toBe("application/problem+json");
  }
});

test("caches hashed files forever, compressed, but not pages", async () => {
  const pages = await makePages();
  const asset = await call("/assets/index-1a2b.js", { pages });
  expect(await asset.text()).toBe("console.log(1);\n");
  expect(asset.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(asset.headers.get("cache-control")).toContain("immutable");
  expect((await call("/", { pages })).headers.get("cache-control")).toBe("no-cache");
  expect((await call("/assets/..%2Findex.html", { pages })).status).toBe(404);
});

test("serves pages without a token, but no data", async () => {
  const pages = await makePages();
  const guarded = { pages, token: "0123456789abcdef" };
  const page = await call("/", guarded);
  expect(page.status).toBe(200);
  expect(await page.text(), "not even the name of the cluster").toContain('content="{}"');
  expect((await call("/assets/index-1a2b.js", guarded)).status).toBe(200);
  for (const path of ["/v1/overview", "/v1/controllers", "/queues", "/metrics", "/v1/events"]) {
    expect((await call(path, guarded)).status, path).toBe(401);
  }
});

test("reports a missing dashboard build", async () => {
  const response = await call("/", { pages: "/nowhere" });
  expect(await response.text()).toContain("npm run setup");
});
