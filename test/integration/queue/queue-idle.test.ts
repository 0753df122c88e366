import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createWorkQueue, QueuePumps } from "@konverge/queue";
import { pumpScript } from "../../../libs/queue/src/scripts/pump.ts";
import { rebaseScript } from "../../../libs/queue/src/scripts/rebase.ts";
import { watchCommands } from "../../contract/watch-commands.ts";
import { until } from "../../support/until.ts";
import { CLUSTER, useQueues, workOn } from "./queue-harness.ts";

const harness = useQueues();
let server: RunningRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** Starts the workers of an idle fleet, and returns our script calls per second of Redis's clock. */
async function idleRate(processes: number, controllers: number): Promise<number> {
  const redis = { url: server.url };
  const prefix = `idle-${processes}-${controllers}`;
  using seen = await watchCommands(server.url);
  const queues = Array.from({ length: processes }, () => {
    const pumps = new QueuePumps(redis);
    return Array.from({ length: controllers }, (_, index) =>
      createWorkQueue({ redis, prefix, cluster: CLUSTER, controller: `c${index}`, pumps }),
    );
  }).flat();
  for (const queue of queues) workOn(queue, () => ({ kind: "done" }));
  // BullMQ's names have a colon after the root.
  const root = `${prefix}:{${CLUSTER}}/`;
  const ours = () =>
    seen.commands.filter(
      ({ args, byScript }) => !byScript && args.some((arg) => arg.startsWith(root)),
    );
  const calls = ({ sha }: { readonly sha: string }, from = 0) =>
    ours()
      .slice(from)
      .filter(({ args }) => args[1] === sha).length;
  // The first rounds of every worker end with this script.
  await until("the first rounds", () => calls(rebaseScript) >= processes * controllers);
  const from = ours().length;
  await until("ten rounds", () => calls(pumpScript, from) >= 10);
  const counted = ours().slice(from);
  await Promise.all(queues.map((queue) => queue.close()));
  const tookMs = (counted.at(-1)?.atMs ?? 0) - (counted[0]?.atMs ?? 0);
  return (counted.length / tookMs) * 1_000;
}

test("an idle fleet sends commands per process and per queue, but not per process and queue", async () => {
  // At most two rounds of each process, and aging and rebase of each queue by the elected one.
  const model = (processes: number, controllers: number) => 2 * processes + 2 * controllers;
  const fleets = [
    [1, 1],
    [1, 8],
    [6, 1],
    [6, 8],
  ] as const;
  await Promise.all(
    fleets.map(async ([processes, controllers]) => {
      const rate = await idleRate(processes, controllers);
      expect(rate, `${processes} processes, ${controllers} controllers`).toBeLessThan(
        1.5 * model(processes, controllers),
      );
    }),
  );
});

test("another process fires timers and carries out cancellations once the elected one has gone", async () => {
  const open = () => harness.open();
  const [first, second] = [open(), open()];
  const one = workOn(first, () => ({ kind: "done" }), { workerId: "first" });
  await until("the first pump is elected", () =>
    harness.redis.hget(`${harness.prefix}:{${CLUSTER}}/pumps`, "node-pool"),
  );
  const two = workOn(second, () => ({ kind: "done" }), { workerId: "second" });
  await one.kill();
  const key = { controller: "node-pool", cluster: CLUSTER, resource: "r", group: "g", name: "a" };
  await first.requestAt(key, Date.now());
  await until("the timer fires", () => two.closed.length === 1);
  expect(two.started[0]?.triggers[0]?.kind).toBe("schedule");
});
