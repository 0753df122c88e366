import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createWorkQueue, QueueProcess } from "@konverge/queue";
import { electionsScript } from "../../../libs/queue/src/scripts/elections.ts";
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

/** Time between two rounds of a pump, in ms. */
const TICK_MS = 500;

/** Returns the number of ticks that pumps had, by the clock that starts their rounds: on a busy machine they miss some. */
const ticks = () => Math.floor(performance.now() / TICK_MS);

/** Short, so that BullMQ's looks for jobs of lost workers would be seen. */
const LEASE_MS = 1_000;

/** Starts the workers of an idle fleet, and returns our script calls per tick, and BullMQ's looks for jobs of lost workers. */
async function idleCalls(processes: number, controllers: number) {
  const redis = { url: server.url };
  const prefix = `idle-${processes}-${controllers}`;
  using seen = await watchCommands(server.url);
  const queues = Array.from({ length: processes }, () => {
    const process = new QueueProcess(redis);
    return Array.from({ length: controllers }, (_, index) =>
      createWorkQueue({
        redis,
        prefix,
        cluster: CLUSTER,
        controller: `c${index}`,
        process,
        leaseMs: LEASE_MS,
      }),
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
  // So do the first elections, each with a round of its own.
  const first = ours().length;
  await until("eight rounds of elected pumps", () => calls(pumpScript, first) >= 8);
  const others = Math.max(0, processes - controllers);
  await until("other processes read the elections", () => calls(electionsScript, first) >= others);
  const from = ours().length;
  const start = ticks();
  await until("ten ticks and rounds", () => ticks() - start >= 10 && calls(pumpScript, from) >= 10);
  const perTick = (ours().length - from) / (ticks() - start);
  // The first key of BullMQ's script.
  const stalled = new RegExp(`^${prefix}:.*:stalled$`);
  const looks = seen.commands.filter(({ args }) => stalled.test(args[3] ?? "")).length;
  await Promise.all(queues.map((queue) => queue.close()));
  return { perTick, looks };
}

test("an idle fleet sends commands per process, but not per queue", async () => {
  // Per tick: one round of each process with an elected pump. Per five ticks: one read of the elections by each process.
  // Every 60 s: aging and rebase of each queue by its elected process.
  const model = (processes: number, controllers: number) =>
    Math.min(processes, controllers) + processes / 5 + controllers / 60;
  const fleets = [
    [1, 1],
    [1, 8],
    [6, 1],
    [6, 8],
  ] as const;
  await Promise.all(
    fleets.map(async ([processes, controllers]) => {
      const { perTick, looks } = await idleCalls(processes, controllers);
      const fleet = `${processes} processes, ${controllers} controllers`;
      expect(perTick, fleet).toBeLessThan(1.5 * model(processes, controllers));
      expect(looks, fleet).toBe(0);
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
