import {
  contentionReportSchema,
  overviewSchema,
  type ContentionReport,
  type Overview,
} from "@konverge/contracts";
import { createGuard } from "@konverge/guard";
import { createControllerRegistry } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { keyOf, workOn } from "../queue/queue-harness.ts";
import { NODE_POOL } from "../queue/announce.ts";
import { useApi, type Call } from "./api-harness.ts";
import { until } from "../../support/until.ts";
import { historyBatch, openHistoryWriter } from "../../support/history-batch.ts";

const api = useApi();
const { queues: harness } = api;

const POOLS = "nodepools.demo.konverge.dev";
const WRITES = 50;
const LOOP = {
  kind: "selfTriggered",
  count: 20,
  step: 1,
  sinceMs: 1,
  paths: [],
  managers: [],
  worker: "w-1",
  protection: "report",
} as const;

interface Waste {
  readonly object: string;
  readonly controller: string;
}

/** Writes without effect of the current minute, each against a manager named after the object. */
async function waste(cluster: string, notes: readonly Waste[], loops: readonly string[] = []) {
  const writer = openHistoryWriter(harness, cluster);
  const minute = Math.floor(Date.now() / 60_000);
  const state = JSON.stringify({ ...LOOP, untilMs: Date.now() + 60_000 });
  await writer.flush(
    historyBatch({
      wasted: notes.map((note) => ({ ...note, minute, writes: WRITES })),
      contention: notes.map(({ object }) => ({
        object,
        conflicts: 1,
        pairs: [{ kind: "conflict", manager: `rival-${object.split("/")[2]}`, path: "", count: 1 }],
      })),
      loops: new Map(loops.map((key) => [key, state])),
    }),
  );
}

async function read(call: Call, token: string, cluster = "default") {
  const texts = await Promise.all(
    ["contention", "overview"].map(async (path) => {
      const response = await call(`/v1/${path}?cluster=${cluster}`, { token });
      expect(response.status).toBe(200);
      return await response.text();
    }),
  );
  const [report = "", overview = ""] = texts;
  return {
    text: texts.join("\n"),
    report: contentionReportSchema.parse(JSON.parse(report)),
    overview: overviewSchema.parse(JSON.parse(overview)),
  };
}

const episodesOf = ({ episodes }: ContentionReport) =>
  episodes
    .map(({ controller, namespace, name }) => `${controller} ${namespace}/${name}`)
    .toSorted();
const contentionIn = ({ problems }: Overview) =>
  problems
    .filter(({ code }) => code === "contention" || code === "loop")
    .map(({ code, controller, key }) => `${code} ${controller} ${key?.split("/").at(-1)}`)
    .toSorted();

test("episodes and their problems are limited to the controllers, namespaces and clusters of a token", async () => {
  await api.announce({ name: "pool-labels", kind: "NodePool" });
  const registry = createControllerRegistry({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "edge",
  });
  await registry.announce([{ ...NODE_POOL, cluster: "edge" }]);
  await registry.close();
  const crowd = Array.from({ length: 30 }, (_, at) => ({
    object: `nodes.demo.konverge.dev/_/node-${at}`,
    controller: "nodes",
  }));
  await waste(
    "default",
    [
      { object: `${POOLS}/blue/a`, controller: "node-pool" },
      { object: `${POOLS}/blue/a`, controller: "pool-labels" },
      { object: `${POOLS}/green/g`, controller: "node-pool" },
      ...crowd,
    ],
    [`node-pool/default/${POOLS}/green/looping`, `pool-labels/default/${POOLS}/blue/labelled`],
  );
  await waste("edge", [{ object: `${POOLS}/blue/e`, controller: "node-pool" }]);

  const call = api.serve({ isLoopback: false });
  const pools = await api.token("pools", { scope: { controllers: ["node-pool"] } });
  const one = await read(call, pools);
  expect(episodesOf(one.report)).toEqual(["node-pool blue/a", "node-pool green/g"]);
  expect(one.report.moreEpisodes, "foreign episodes are not counted").toBe(0);
  expect(one.text).not.toMatch(/pool-labels|node-\d|"nodes"|blue\/e\b|labelled/);
  expect(contentionIn(one.overview)).toEqual([
    "contention node-pool a",
    "contention node-pool g",
    "loop node-pool looping",
  ]);

  const blue = await api.token("blue", { role: "operator", scope: { namespaces: ["blue"] } });
  const two = await read(call, blue);
  expect(episodesOf(two.report)).toEqual(["node-pool blue/a", "pool-labels blue/a"]);
  expect(two.report.moreEpisodes).toBe(0);
  expect(two.text).not.toMatch(/green|node-\d|rival-g|looping|blue\/e\b/);
  expect(contentionIn(two.overview)).toEqual([
    "contention node-pool a",
    "contention pool-labels a",
    "loop pool-labels labelled",
  ]);

  const edge = await api.token("edge", { role: "admin", scope: { clusters: ["edge"] } });
  const three = await read(call, edge, "edge");
  expect(episodesOf(three.report)).toEqual(["node-pool blue/e"]);
  expect(three.overview.clusters).toEqual(["edge"]);
  expect(three.text).not.toMatch(/pool-labels|green|node-\d|"default"|rival-a/);

  const all = await read(call, await api.token("all"));
  expect(all.report.episodes).toHaveLength(20);
  expect(all.report.moreEpisodes).toBe(13);
  expect(all.text).not.toMatch(/rival-e\b/);
});

test("the symptoms and queued requests of an outage are limited to the scope of a token", async () => {
  const guard = await createGuard({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w-1",
    limits: { ratePerSecond: 500 },
  });
  onTestFinished(() => guard.close());
  const registry = createControllerRegistry({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
  });
  const stop = registry.heartbeat({
    workerId: "w-1",
    controllers: ["node-pool", "nodes"],
    definitions: {},
    role: "all",
    version: "test",
    startedAt: "2026-01-01T00:00:00Z",
    host: "here",
  });
  onTestFinished(async () => {
    await stop();
    await registry.close();
  });
  const call = api.serve({ isLoopback: false });
  const local = api.serve({ isLoopback: true });
  for (const body of [
    { controller: "node-pool", namespace: "blue", name: "a" },
    { controller: "node-pool", namespace: "blue", name: "b" },
    { controller: "nodes", name: "n" },
  ]) {
    expect((await local("/v1/reconciles", { body })).status).toBe(202);
  }
  for (const { name, cluster } of await api.access.controllers("default")) {
    for (const { queue } of await api.access.rawQueues({ name, cluster })) {
      for (const job of await queue.getJobs(["wait", "prioritized"])) {
        await harness.redis.hset(queue.toKey(job.id ?? ""), "timestamp", Date.now() - 300_000);
      }
    }
  }
  for (let calls = 0; calls < 3; calls++) {
    const permit = await guard.admit({ verb: "get", resource: "nodepools.", priority: "event" });
    permit.settle({ kind: "network" });
  }
  const outageFor = async (token: string) => {
    const response = await call("/v1/overview", { token });
    const { problems } = overviewSchema.parse(await response.json());
    const found = problems.find(({ code }) => code === "api_server_outage");
    return found?.symptoms === undefined ? undefined : found;
  };
  const all = await api.token("all");
  const nodes = await api.token("nodes", { scope: { controllers: ["nodes"] } });
  const whole = await until("the outage is reported", () => outageFor(all));
  expect(whole.consequence).toContain("3 requests queued");
  expect(whole.symptoms?.map(({ controller }) => controller).toSorted()).toEqual([
    "node-pool",
    "nodes",
  ]);
  const own = await outageFor(nodes);
  expect(own).toMatchObject({
    since: whole.since,
    consequence: expect.stringContaining("1 request queued"),
    symptoms: [{ code: "backlog", controller: "nodes" }],
  });
  expect(own?.symptoms).toHaveLength(1);
  expect(JSON.stringify(own)).not.toContain("node-pool");
});

test("dead letters and pauses of other namespaces are not reported", async () => {
  const { queue } = await api.access.find("default", "node-pool");
  const worker = workOn(queue, ({ key }) => ({
    kind: "terminal",
    error: new Error(`cannot ${key.namespace}`),
  }));
  for (const namespace of ["blue", "green"]) {
    await queue.request({ ...keyOf("a"), namespace }, { kind: "cli", by: "test" });
    const scope = { kind: "namespace", namespace: `${namespace}-paused` } as const;
    await queue.control.pause(scope, { by: "ada", reason: `the ${namespace} migration` });
  }
  await until("both are dead-lettered", () => worker.closed.length === 2);
  await worker.stop();
  const call = api.serve({ isLoopback: false });
  const blue = await api.token("blue", { scope: { namespaces: ["blue", "blue-paused"] } });
  const { overview, text } = await read(call, blue);
  expect(text).not.toContain("green");
  expect(overview.problems).toMatchObject([
    { code: "no_workers" },
    { code: "dead_letters", message: "node-pool: 1 dead-lettered key", cause: "1x cannot blue" },
    { code: "paused", message: expect.stringContaining("the blue migration") },
  ]);
});
