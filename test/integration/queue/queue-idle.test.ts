import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createWorkQueue, QueuePumps } from "@konverge/queue";
import { watchCommands } from "../../contract/watch-commands.ts";
import { until } from "../../support/until.ts";
import { CLUSTER, useQueues, workOn } from "./queue-harness.ts";

const harness = useQueues();
let server: RunningRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** BullMQ's own commands: a blocking one, a fetch and a search for stalled jobs per worker and 5 s. */
const BULL = /:(marker|stalled-check)$/;

/** Starts the workers of an idle fleet, and returns the commands of clients per second, without those of BullMQ. */
async function idleRate(processes: number, controllers: number): Promise<number> {
  const redis = { url: server.url };
  const prefix = `idle-${processes}-${controllers}`;
  const queues = Array.from({ length: processes }, () => {
    const pumps = new QueuePumps(redis);
    return Array.from({ length: controllers }, (_, index) =>
      createWorkQueue({ redis, prefix, cluster: CLUSTER, controller: `c${index}`, pumps }),
    );
  }).flat();
  for (const queue of queues) workOn(queue, () => ({ kind: "done" }));
  using seen = await watchCommands(server.url);
  const ours = () =>
    seen.commands.filter(
      ({ args, byScript }) =>
        !byScript && !args.some((arg) => BULL.test(arg)) && args[0] !== "info",
    );
  const isPump = (args: readonly string[]) => args.includes(`${prefix}:{${CLUSTER}}/pumps`);
  // From here on, the pumps of all processes have had their first round.
  await until(
    "the first rounds",
    () => ours().filter(({ args }) => isPump(args)).length > processes,
  );
  const from = ours().length;
  const beganMs = performance.now();
  await until(
    "ten rounds",
    () =>
      ours()
        .slice(from)
        .filter(({ args }) => isPump(args)).length >= 10,
  );
  const rate = ((ours().length - from) / (performance.now() - beganMs)) * 1_000;
  await Promise.all(queues.map((queue) => queue.close()));
  return rate;
}

test("an idle fleet sends commands per process and per queue, but not per process and queue", async () => {
  // Two rounds of the elected pump, ageing and rebase of each queue, and a look of each other process within 3 s.
  const model = (processes: number, controllers: number) => 2 + 2 * controllers + processes / 3;
  for (const [processes, controllers] of [
    [1, 1],
    [1, 8],
    [6, 1],
    [6, 8],
  ] as const) {
    const rate = await idleRate(processes, controllers);
    expect(rate, `${processes} processes, ${controllers} controllers`).toBeLessThan(
      1.5 * model(processes, controllers),
    );
  }
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
