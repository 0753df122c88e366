import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { createGuard, openGuardControl } from "@konverge/guard";
import { Pod } from "@konverge/kube/kinds";
import {
  bindCluster,
  createControllerRegistry,
  createWorkQueue,
  type RequestState,
  type WorkQueue,
} from "@konverge/queue";
import { checkRedis } from "@konverge/redis";
import { createObjectLanes } from "@konverge/lanes";
import { guardKeys } from "../../../libs/guard/src/guard-keys.ts";
import { CONTROLLER, hold, keyOf, workOn, type TestWorker } from "../queue/queue-harness.ts";
import { startRedisCluster, type RunningRedisCluster } from "./redis-cluster-fixture.ts";
import { until } from "../../support/until.ts";

/** Kubernetes clusters whose names map to the first, second and third node. */
const KUBES = ["prod", "default", "us"];

const http = { kind: "http" } as const;
const cleanup = new Set<() => Promise<unknown>>();
let servers: RunningRedisCluster | undefined;

afterEach(async () => {
  await Promise.all([...cleanup].map((close) => close()));
  cleanup.clear();
  await servers?.[Symbol.asyncDispose]();
  servers = undefined;
});

const start = async (options?: { readonly replica?: boolean }) => {
  servers = await startRedisCluster(options);
  return servers;
};
const open = (url: string, cluster: string): WorkQueue => {
  const queue = createWorkQueue({
    redis: { url },
    controller: CONTROLLER,
    cluster,
    leaseMs: 2_000,
  });
  cleanup.add(() => queue.close());
  return queue;
};
const key = (cluster: string, name: string) => ({ ...keyOf(name), cluster });
const done = (queue: WorkQueue): TestWorker => workOn(queue, () => ({ kind: "done" }));
const finished = (queue: WorkQueue, id: string): Promise<RequestState> =>
  until(`the end of ${id}`, async () => {
    const state = await queue.getRequest(id).catch(() => undefined);
    return state?.phase === "finished" && state;
  });
/** Repeats a request until Redis accepts it, like a caller that receives 503. */
const insist = (queue: WorkQueue, cluster: string, name: string) =>
  until(`Redis takes ${name}`, () =>
    queue.request(key(cluster, name), http).catch(() => undefined),
  );

test("queues, registry, binding, lanes and guard of three clusters work, each on its own node", async () => {
  const { url, primaries } = await start();
  const redis = { url };
  expect((await checkRedis(redis)).warnings).toEqual([]);
  const [first] = primaries;
  await expect(checkRedis({ url: first?.url ?? "" })).rejects.toMatchObject({
    code: "redis_unsupported",
  });

  for (const cluster of KUBES) {
    await bindCluster({ redis, cluster, uid: `uid-${cluster}` });
    await expect(bindCluster({ redis, cluster, uid: "another" })).rejects.toMatchObject({
      code: "cluster_mismatch",
    });
    const registry = createControllerRegistry({ redis, cluster });
    cleanup.add(() => registry.close());
    await registry.announce([{ name: CONTROLLER, cluster, ...Pod }]);
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
    await until("the worker is listed", async () => (await registry.listWorkers()).length === 1);
    expect(await registry.listClusters()).toContain(cluster);

    const queue = open(url, cluster);
    const worker = done(queue);
    const ids = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => (await insist(queue, cluster, `${n}`)).id),
    );
    for (const id of ids) expect((await finished(queue, id)).outcome).toBe("done");
    await queue.requestAt(key(cluster, "timed"), Date.now());
    await until("the timer fires", () => worker.closed.some(({ id }) => id.endsWith("/timed")));
    expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 0 });
    expect(worker.errors).toEqual([]);
  }

  const homes = await Promise.all(
    primaries.map(async ({ port }) => {
      const node = new Redis({ port });
      const keys = await node.keys("*");
      node.disconnect();
      return KUBES.filter((cluster) => keys.some((name) => name.includes(`{${cluster}}`)));
    }),
  );
  expect(homes.toSorted()).toEqual(KUBES.map((cluster) => [cluster]).toSorted());
});

test("lanes and breaker states pass between processes over the cluster's channels", async () => {
  const { url } = await start();
  const redis = { url };
  for (const cluster of KUBES) {
    const errors: Error[] = [];
    const onError = (error: Error) => errors.push(error);
    const startLanes = (processId: string) => {
      // The hold is longer than the test: only the message can pass the lane in time.
      const lanes = createObjectLanes({ redis, cluster, processId, holdMs: 60_000, onError });
      cleanup.add(async () => lanes.close());
      return lanes;
    };
    const one = startLanes("one");
    const two = startLanes("two");
    // A passed object is valid for 2 s, which a busy machine can need.
    const carried = await until("an object is passed", async () => {
      const first = await one.enter("object");
      const second = two.enter("object");
      first.leave({ metadata: { name: "object" } });
      const turn = await second;
      turn.leave();
      return turn.carried;
    });
    expect(carried).toEqual({ metadata: { name: "object" } });
    expect(errors).toEqual([]);

    const guards = await Promise.all(
      ["g1", "g2"].map((workerId) => createGuard({ redis, cluster, workerId })),
    );
    for (const guard of guards) cleanup.add(() => guard.close());
    for (const guard of guards) {
      const permit = await guard.admit({ verb: "get", resource: "pods", priority: "event" });
      permit.settle({ kind: "response", status: 200 });
    }
    await using control = openGuardControl({ redis, prefix: "konverge" });
    await control.isolate(cluster, { by: "test", reason: "to see it" });
    // Without calls, only a message can carry the state.
    await until("both are isolated", () =>
      guards.every(({ breaker }) => breaker.mode === "isolated"),
    );
  }
});

test("P1: a failover to a replica loses no acknowledged request and does not affect other clusters", async () => {
  const { url, primaries, replica } = await start({ replica: true });
  const queues = new Map(KUBES.map((cluster) => [cluster, open(url, cluster)]));
  const [hit = "", ...others] = KUBES;
  const held = hold();
  const workers = KUBES.map((cluster) => {
    const queue = queues.get(cluster);
    if (queue === undefined) throw new Error(cluster);
    return workOn(queue, async ({ id }) => {
      if (id.endsWith("/running")) await held.wait();
      return { kind: "done" };
    });
  });
  const accepted: { readonly queue: WorkQueue; readonly id: string }[] = [];
  for (const [cluster, queue] of queues) {
    for (const name of ["running", "a", "b"]) {
      accepted.push({ queue, id: (await insist(queue, cluster, name)).id });
    }
  }
  await until("the attempts run", () =>
    workers.every(({ started }) => started.some(({ id }) => id.endsWith("/running"))),
  );
  const guard = await createGuard({ redis: { url }, cluster: hit, workerId: "g" });
  cleanup.add(() => guard.close());
  const { state } = guardKeys("konverge", hit);
  const callOnce = async () => {
    const permit = await guard.admit({ verb: "get", resource: "pods", priority: "event" });
    permit.settle({ kind: "response", status: 200 });
  };
  await callOnce();
  await primaries[0]?.kill();
  // The others continue immediately.
  for (const cluster of others) {
    const queue = queues.get(cluster);
    if (queue === undefined) throw new Error(cluster);
    const { id } = await insist(queue, cluster, "meanwhile");
    expect((await finished(queue, id)).outcome).toBe("done");
  }
  const queue = queues.get(hit);
  if (queue === undefined) throw new Error(hit);
  accepted.push({ queue, id: (await insist(queue, hit, "after")).id });
  held.release();
  for (const { queue: own, id } of accepted) expect((await finished(own, id)).outcome).toBe("done");

  // P5: the new primary may lack the last grants, so the guard must detect the failover and empty the bucket.
  const successor = new Redis({ port: replica?.port ?? 0 });
  cleanup.add(async () => successor.disconnect());
  const runId = /run_id:(\S+)/.exec(await successor.info("server"))?.[1];
  await until("the guard knows the new primary", async () => {
    await callOnce().catch(() => undefined);
    return (await successor.hget(state, "runId")) === runId;
  });
});

test("P1: submitted requests reach the shards of the other nodes while one is down, and its own when it is back", async () => {
  const cluster = await start();
  const errors: Error[] = [];
  const queue = createWorkQueue({
    redis: { url: cluster.url },
    controller: CONTROLLER,
    cluster: "default",
    shards: 8,
    onError: (error) => errors.push(error),
  });
  cleanup.add(() => queue.close());
  const keys = Array.from({ length: 80 }, (_, n) => keyOf(`${n}`));
  const requested = async () => {
    const states = await Promise.allSettled(keys.map((each) => queue.getKey(each)));
    const answers = states.filter((state) => state.status === "fulfilled");
    return { answers: answers.length, found: answers.filter(({ value }) => value).length };
  };
  await until("every node answers", async () => (await requested()).answers === keys.length);
  const before = await queue.incarnation();
  await cluster.primaries[0]?.kill();
  await until("a part is away", async () => (await requested()).answers < keys.length);
  await Promise.all(keys.map((each) => queue.submit(each, http)));
  const others = await until("all requests of the other shards", async () => {
    const { answers, found } = await requested();
    return answers > 0 && found === answers && answers;
  });
  expect(others).toBeLessThan(keys.length);
  expect(await queue.incarnation()).toBe(before);
  expect(errors.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^request for .* failed and is repeated: Redis cannot be used/),
  );
  await cluster.restart(0);
  await until("all requests", async () => (await requested()).found === keys.length);
});

test("P1: a node without a replica crashes and returns with its AOF: 503 with a fix meanwhile, then all requests end", async () => {
  const cluster = await start();
  const { url, primaries } = cluster;
  const [hit = ""] = KUBES;
  const queue = open(url, hit);
  const first = await insist(queue, hit, "a");
  await primaries[0]?.kill();
  const refusal = await until("the refusal", () =>
    queue.request(key(hit, "b"), http).then(
      () => undefined,
      (error: unknown) => error as Error,
    ),
  );
  expect(refusal).toMatchObject({ code: "redis_unavailable" });
  const worker = done(queue);
  await cluster.restart(0);
  expect((await finished(queue, first.id)).outcome).toBe("done");
  const { id } = await insist(queue, hit, "c");
  expect((await finished(queue, id)).outcome).toBe("done");
  await worker.stop();
});
