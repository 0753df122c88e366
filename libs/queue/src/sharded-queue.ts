import { formatKey, type ObjectKey } from "@konverge/core";
import { joinWorkers } from "./attempt/join-workers.ts";
import { parseRequestId } from "./keys/request-id.ts";
import { requestMany } from "./request/request-many.ts";
import { shardOf } from "./keys/shard-of.ts";
import { createShardedControl } from "./control/sharded-control.ts";
import type { QueueWorker, WorkOptions, WorkQueue } from "./contract/work-queue.ts";

/**
 * Combines several queues with separate hash tags. Each key belongs to one shard, so the promises for keys (P1, P2) hold
 * unchanged; order and fairness hold within a shard.
 */
export function createShardedQueue(
  shards: readonly [WorkQueue, ...WorkQueue[]],
  defaultConcurrency: number,
): WorkQueue {
  const [first] = shards;
  const home = (id: string): WorkQueue => shards[shardOf(id, shards.length)] ?? first;
  const homeOf = (key: ObjectKey): WorkQueue => home(formatKey(key));
  const request: WorkQueue["request"] = async (key, trigger, options) =>
    await homeOf(key).request(key, trigger, options);
  return {
    controller: first.controller,
    cluster: first.cluster,
    control: createShardedControl(
      shards.map(({ control }) => control),
      (id) => home(id).control,
    ),
    request,
    submit: (key, trigger, options) => homeOf(key).submit(key, trigger, options),
    requestMany: (items) => requestMany(items, request),
    requestAt: async (key, atMs) => await homeOf(key).requestAt(key, atMs),
    getRequest: async (id) => await home(parseRequestId(id).key).getRequest(id),
    getKey: async (key) => await homeOf(key).getKey(key),
    abandon: async (key, epoch) => await homeOf(key).abandon(key, epoch),
    waitingRequests: (keys) => waitingRequests(shards, keys),
    listAttempts: async (key, options) => await homeOf(key).listAttempts(key, options),
    runningLog: async (key) => await homeOf(key).runningLog(key),
    async *listKeys() {
      for (const shard of shards) yield* shard.listKeys();
    },
    async counts() {
      const total = { waiting: 0, active: 0, delayed: 0 };
      for (const { waiting, active, delayed } of await Promise.all(
        shards.map((shard) => shard.counts()),
      )) {
        total.waiting += waiting;
        total.active += active;
        total.delayed += delayed;
      }
      return total;
    },
    async backlog() {
      const each = await Promise.all(shards.map((shard) => shard.backlog()));
      return {
        keys: sum(each.map(({ keys }) => keys)),
        deadLettered: sum(each.map(({ deadLettered }) => deadLettered)),
        paused: sum(each.map(({ paused }) => paused)),
        headAgeMs: Math.max(...each.map(({ headAgeMs }) => headAgeMs)),
        changeAgeMs: Math.max(...each.map(({ changeAgeMs }) => changeAgeMs)),
      };
    },
    incarnation: createShardedIncarnation(shards),
    async accepted(signal) {
      await Promise.all(shards.map((shard) => shard.accepted(signal)));
    },
    readProgress: () => first.readProgress(),
    writeProgress: (text) => first.writeProgress(text),
    work: (work) => workOnAll(shards, work, work.concurrency ?? defaultConcurrency),
    async close() {
      await Promise.all(shards.map((shard) => shard.close()));
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

async function waitingRequests(
  shards: readonly WorkQueue[],
  keys: readonly ObjectKey[],
): Promise<number[]> {
  const numbers = Array.from(keys, () => 0);
  const homes = keys.map((key) => shardOf(formatKey(key), shards.length));
  const reads = shards.map(async (shard, index) => {
    const own = [...keys.keys()].filter((at) => homes[at] === index);
    if (own.length === 0) return;
    const found = await shard.waitingRequests(own.flatMap((at) => keys[at] ?? []));
    for (const [place, at] of own.entries()) numbers[at] = found[place] ?? 0;
  });
  await Promise.all(reads);
  return numbers;
}

/** Starts a worker per shard. Each gets at least one slot; the first ones get the remainder. */
function workOnAll(shards: readonly WorkQueue[], work: WorkOptions, slots: number): QueueWorker {
  const each = Math.floor(slots / shards.length);
  const workers = shards.map((shard, index) => {
    const concurrency = Math.max(1, each + (index < slots % shards.length ? 1 : 0));
    const { retriesPerSecond } = work;
    return shard.work({
      ...work,
      concurrency,
      ...(retriesPerSecond === undefined
        ? {}
        : { retriesPerSecond: retriesPerSecond / shards.length }),
    });
  });
  return joinWorkers(workers);
}

/** A shard that does not answer must neither delay nor repeat the requests for the others: it keeps its last known value. */
function createShardedIncarnation(shards: readonly WorkQueue[]): WorkQueue["incarnation"] {
  const known = shards.map(() => "");
  return async () => {
    const answers = await Promise.allSettled(shards.map((shard) => shard.incarnation()));
    const failures: unknown[] = [];
    for (const [index, answer] of answers.entries()) {
      if (answer.status === "fulfilled") known[index] = answer.value;
      else failures.push(answer.reason);
    }
    if (failures.length === shards.length) throw failures[0];
    return known.join(" ");
  };
}
