import { expect, test } from "vitest";
import { Pod } from "@konverge/kube/kinds";
import { bindCluster, createControllerRegistry } from "@konverge/queue";
import { runRaw } from "../../support/run-raw.ts";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { beginScript } from "../../../libs/queue/src/scripts/begin.ts";
import { CLUSTER, CONTROLLER, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const SHARDS = 4;
const http = { kind: "http" } as const;
const names = (count: number) => Array.from({ length: count }, (_, n) => `pool-${n}`);

test("each key belongs to one shard for keys, requests and timers", async () => {
  const queue = harness.open({ shards: SHARDS });
  const worker = workOn(queue, () => ({ kind: "done" }));
  const accepted = await Promise.all(names(40).map((name) => queue.request(keyOf(name), http)));
  for (const { id } of accepted) {
    const state = await until("the end", async () => {
      const found = await queue.getRequest(id);
      return found.phase === "finished" && found;
    });
    expect(state.outcome).toBe("done");
  }
  // A request whose answer came late was made twice.
  const { key, number } = accepted[7] ?? expect.unreachable();
  expect((await queue.getKey(keyOf("pool-7")))?.finished).toBe(number);
  const attempts = () => worker.closed.filter(({ id }) => id === key).length;
  expect(await queue.listAttempts(keyOf("pool-7"))).toHaveLength(attempts());
  const before = attempts();
  await queue.requestAt(keyOf("pool-7"), Date.now());
  await until("the timer", () => attempts() > before);

  const hashes = await harness.redis.keys(`${harness.prefix}:{${CLUSTER}/*}/key/*`);
  expect(hashes).toHaveLength(40);
  const used = new Set(hashes.map((hash) => /\{[^}]*\}/.exec(hash)?.[0]));
  expect(used.size).toBe(SHARDS);
  expect(await harness.redis.keys(`${harness.prefix}:{${CLUSTER}}/key/*`)).toEqual([]);
  // Another process uses the same shards.
  const other = harness.open({ shards: SHARDS });
  expect((await other.getKey(keyOf("pool-9")))?.finished).toBe(accepted[9]?.number);
});

test("P2 over shards: requests coalesce, concurrency is divided, counts are totals", async () => {
  const queue = harness.open({ shards: SHARDS });
  const held = hold();
  const worker = workOn(
    queue,
    async () => {
      await held.wait();
      return { kind: "done" };
    },
    { concurrency: 6 },
  );
  await Promise.all([...names(60), ...names(60)].map((name) => queue.request(keyOf(name), http)));
  await until("every slot is taken", () => worker.active === 6);
  expect(await queue.counts()).toEqual({ waiting: 54, active: 6, delayed: 0 });
  held.release();
  await until("all ended", () => worker.closed.length === 60);
});

test("each shard has a slot, even with fewer slots than shards", async () => {
  const queue = harness.open({ shards: SHARDS });
  const worker = workOn(queue, () => ({ kind: "done" }), { concurrency: 1 });
  await Promise.all(names(40).map((name) => queue.request(keyOf(name), http)));
  await until("all ended", () => worker.closed.length === 40);
  expect(worker.started).toHaveLength(40);
});

test("rejects a number of shards that differs from the stored one, with a fix", async () => {
  const common = { redis: harness.target, prefix: harness.prefix, cluster: CLUSTER };
  await bindCluster({ ...common, uid: "u", shards: SHARDS });
  await bindCluster({ ...common, uid: "u", shards: SHARDS });
  await expect(bindCluster({ ...common, uid: "u" })).rejects.toMatchObject({
    code: "shards_mismatch",
    message: expect.stringMatching(
      /have 4 shards in this Redis, but 1 are configured; set shards to 4/,
    ),
  });
  for (const [binding, code] of [
    [{ uid: "u", shards: 1 }, "shards_mismatch"],
    [{ uid: "other", shards: SHARDS }, "cluster_mismatch"],
  ] as const) {
    const refused = createControllerRegistry({ ...common, binding });
    const announced = [{ name: CONTROLLER, cluster: CLUSTER, ...Pod }] as const;
    await expect(refused.announce(announced)).rejects.toMatchObject({ code });
    await refused.close();
  }
  const registry = createControllerRegistry(common);
  expect(await registry.shards()).toBe(SHARDS);
  expect(await registry.list()).toEqual([]);
  await registry.close();
});

test("a live worker restores the binding in a Redis that lost it, before its controllers", async () => {
  const binding = { uid: "u", shards: SHARDS };
  const common = { redis: harness.target, prefix: harness.prefix, cluster: CLUSTER };
  const registry = createControllerRegistry({ ...common, binding });
  await registry.announce([{ name: CONTROLLER, cluster: CLUSTER, ...Pod }]);
  const at = new Date().toISOString();
  registry.heartbeat({
    workerId: "w",
    controllers: [],
    definitions: {},
    role: "all",
    version: "0",
    startedAt: at,
    host: "h",
  });
  await until("the first heartbeat", async () => (await registry.listWorkers()).length === 1);
  const lost = await harness.redis.keys(`${harness.prefix}:*`);
  await harness.redis.unlink(...lost);
  const reader = createControllerRegistry(common);
  await until("the controllers are back", async () => (await reader.list()).length === 1);
  expect(await reader.shards()).toBe(SHARDS);
  await expect(bindCluster({ ...common, uid: "other" })).rejects.toMatchObject({
    code: "cluster_mismatch",
  });
  await Promise.all([registry.close(), reader.close()]);
});

test("a lost attempt of a shard has a record there and is reported to the worker that detects it, but is not indexed", async () => {
  const home = queueNames(harness.prefix, CLUSTER, CONTROLLER, 2);
  const { fair, aging, pauses, parked, aborts, dead, progress } = home;
  const beginAs = async (owner: string, leaseMs: number) => {
    const [begun] = (await runRaw(harness.redis, beginScript, {
      keys: { fair, aging, pauses, parked, aborts, dead, progress },
      args: {
        leaseMs,
        worker: "w",
        kept: 50,
        retentionMs: 60_000,
        maxLost: 9,
        work: "",
        oldestMs: 0,
      },
      each: [{ key: home.keyHash("k"), owner }],
    })) as unknown[][];
    return begun?.slice(0, 2);
  };
  await harness.redis.hset(home.keyHash("k"), { number: 1, pending: 1, class: 2, since: 1 });
  expect(await beginAs("first", -1)).toEqual(["run", "1 1 0 0 1"]);
  expect(await beginAs("second", 60_000)).toEqual(["run", "2 2 1 0 1 1 1"]);
  expect(await harness.redis.llen(home.attempts("k"))).toBe(1);
  expect(await harness.redis.keys(`${harness.prefix}:*/records`)).toEqual([]);
});

test.each([0, 65, 1.5])("rejects %d shards", (shards) => {
  expect(() => harness.open({ shards })).toThrow(
    expect.objectContaining({ code: "invalid_config", message: expect.stringMatching(/1 to 64/) }),
  );
});
