import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleepMs, type Outcome } from "@konverge/core";
import { createWorkQueue } from "@konverge/queue";
import { startRedis } from "@konverge/apiserver";
import { expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { CLUSTER, CONTROLLER, keyOf, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { seed } from "../../support/test-run.ts";

const KEYS = 12;
const RESTARTS = 5;
const CALLERS = 4;

test(`P1, P2: Redis is killed and restarted ${RESTARTS} times under load: every acknowledged request runs, one attempt per key at a time (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  await using cleanup = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "konverge-restarts-"));
  cleanup.defer(() => rmSync(dir, { recursive: true, force: true }));
  const start = (port?: number) =>
    startRedis({ dir, port, extraArgs: ["--appendfsync", "always"] });
  let redis = await start();
  cleanup.defer(() => redis.stop());

  /** Attempts with a held lease, per key; aborted attempts do not count. */
  const running = new Map<string, number>();
  const overlaps: string[] = [];
  const started = new Map<string, number>();
  const queues = [0, 1].map(() => {
    const queue = createWorkQueue({
      redis: { url: redis.url },
      controller: CONTROLLER,
      cluster: CLUSTER,
      leaseMs: 1_000,
    });
    cleanup.defer(() => queue.close());
    workOn(queue, async ({ id, signal }): Promise<Outcome> => {
      started.set(id, (started.get(id) ?? 0) + 1);
      running.set(id, (running.get(id) ?? 0) + 1);
      if ((running.get(id) ?? 0) > 1) overlaps.push(id);
      try {
        await sleepMs(random() * 30, signal);
        return { kind: random() < 0.8 ? "done" : "awaitChange" };
      } catch {
        return { kind: "cancelled", cause: "leaseLost" };
      } finally {
        running.set(id, (running.get(id) ?? 0) - 1);
      }
    });
    return queue;
  });

  const acknowledged: string[] = [];
  let refused = 0;
  let calm = false;
  const call = async () => {
    while (!calm) {
      const queue = queues[Math.floor(random() * queues.length)];
      const key = keyOf(`k-${Math.floor(random() * KEYS)}`);
      await queue?.request(key, { kind: "http" }).then(
        ({ id }) => acknowledged.push(id),
        () => (refused += 1),
      );
      await sleepMs(random() * 10);
    }
  };
  const callers = Array.from({ length: CALLERS }, call);
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    const target = acknowledged.length + 20 + Math.floor(random() * 60);
    await until("requests are taken", () => acknowledged.length >= target);
    await redis.kill();
    redis = await start(redis.port);
  }
  calm = true;
  await Promise.all(callers);

  const [queue] = queues;
  for (const id of new Set(acknowledged)) {
    await until(
      `the end of ${id}`,
      async () => (await queue?.getRequest(id).catch(() => undefined))?.phase === "finished",
    );
  }
  expect(overlaps).toEqual([]);
  expect(refused).toBeGreaterThan(0);
  expect(started.size).toBe(KEYS);
  await until("nothing is left", async () => {
    const counts = await queue?.counts();
    return counts !== undefined && counts.waiting + counts.active + counts.delayed === 0;
  });
});
