import { createWorkQueue, type RequestState, type WorkQueue } from "@konverge/queue";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { CLUSTER, CONTROLLER, keyOf, workOn } from "../queue/queue-harness.ts";
import { moveSlot, startRedisCluster } from "./redis-cluster-fixture.ts";

const http = { kind: "http" } as const;
const MOVES = 2;

function open(url: string): WorkQueue {
  const queue = createWorkQueue({
    redis: { url },
    controller: CONTROLLER,
    cluster: CLUSTER,
    leaseMs: 2_000,
  });
  onTestFinished(() => queue.close());
  return queue;
}

const stateOf = (queue: WorkQueue, id: string): Promise<RequestState | undefined> =>
  queue.getRequest(id).catch(() => undefined);

test("P1: moving the slot of a cluster under load loses no acknowledged request, and names the cause meanwhile", async () => {
  await using servers = await startRedisCluster();
  const nodes = servers.primaries.map(({ port }) => new Redis({ port }));
  onTestFinished(() => {
    for (const node of nodes) node.disconnect();
  });
  const [first] = nodes;
  const slot = Number(await first?.cluster("KEYSLOT", `konverge:{${CLUSTER}}`));
  const owned = await Promise.all(nodes.map((node) => node.cluster("COUNTKEYSINSLOT", slot)));
  expect(owned).toEqual([0, 0, 0]);
  let home = Math.floor((slot * 3) / 16_384);

  const queue = open(servers.url);
  const ran = new Map<string, number>();
  const worker = workOn(queue, ({ id }) => {
    const times = (ran.get(id) ?? 0) + 1;
    ran.set(id, times);
    return times % 3 === 1 ? { kind: "retry", error: new Error("once") } : { kind: "done" };
  });
  const accepted = new Set<string>();
  const refusals = new Set<string>();
  let isLoaded = true;
  let asked = 0;
  const callers = Array.from({ length: 6 }, async (_, caller) => {
    while (isLoaded) {
      asked += 1;
      try {
        const key = keyOf(`${caller}-${asked % 20}`);
        accepted.add((await queue.request(key, http)).id);
      } catch (error) {
        refusals.add((error as Error).message);
      }
    }
  });
  await until("there is work", () => accepted.size > 50);
  for (let move = 0; move < MOVES; move += 1) {
    const [from, to] = [nodes[home], nodes[(home + 1) % nodes.length]];
    if (from === undefined || to === undefined) throw new Error("no such node");
    await moveSlot(slot, { from, to }, async () => {
      const before = asked;
      await until("a request meets the slot in two places", () => asked > before);
    });
    home = (home + 1) % nodes.length;
    const before = accepted.size;
    await until("requests are accepted again", () => accepted.size > before + 20);
  }
  isLoaded = false;
  await Promise.all(callers);
  for (const id of accepted) {
    await until(`the end of ${id}`, async () => (await stateOf(queue, id))?.phase === "finished");
  }
  expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 0 });
  const reasons = [...refusals];
  expect(reasons).toContainEqual(
    expect.stringMatching(/a slot of the Redis Cluster is being moved/),
  );
  for (const reason of reasons) {
    expect(reason).toMatch(/slot of the Redis Cluster is being moved|no answer within/);
  }
  await worker.stop();
});
