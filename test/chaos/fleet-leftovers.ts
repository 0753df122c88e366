import { CONTROLLERS } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";

/** Sorted sets, lists and hashes of a queue that must be empty when all work is done. */
const EMPTY = ["timers", "firing", "aging", "dead", "parked", "pauses", "resuming", "aborts"];
/** Keys that BullMQ keeps for the lifetime of a queue. */
const OF_BULLMQ = ["meta", "id", "events", "marker", "stalled-check", "pc"];

/** Returns leftovers of ended work in Redis, one per line. */
export async function findLeftovers(fleet: Fleet): Promise<string[]> {
  const redis = fleet.redis();
  const left: string[] = [];
  const root = `${fleet.prefix}:{default}`;
  for (const controller of CONTROLLERS) {
    const bull = `${root}:${controller}:`;
    for (const key of await redis.keys(`${bull}*`)) {
      const part = key.slice(bull.length);
      if (!OF_BULLMQ.includes(part)) left.push(`of BullMQ: ${controller} ${part}`);
    }
    for (const name of EMPTY) {
      if ((await redis.exists(`${root}/${name}/${controller}`)) === 1)
        left.push(`of the queue: ${name} of ${controller}`);
    }
  }
  for (const key of await redis.keys(`${root}/key/*`)) {
    const hash = await redis.hgetall(key);
    const { owner = "", pending = "0", number = "0", finished = "0" } = hash;
    const name = key.slice(`${root}/key/`.length);
    if (owner !== "") left.push(`a key lease: ${name} of ${owner}`);
    if (pending !== "0") left.push(`a request: ${name} waits`);
    if (Number(finished) < Number(number))
      left.push(`a request: ${name} has finished ${finished} of ${number}`);
  }
  for (const key of await redis.keys(`${root}/lane/*`)) {
    const [holder, ttlMs] = await Promise.all([redis.hget(key, "holder"), redis.pttl(key)]);
    const untilMs = Number(await redis.hget(key, "untilMs"));
    if ((holder ?? "") !== "" && untilMs > Date.now()) left.push(`a lane: ${key} of ${holder}`);
    if (ttlMs < 0) left.push(`a lane that never expires: ${key}`);
  }
  for (const key of await redis.keys(`${root}/lane-waiting/*`)) {
    if ((await redis.pttl(key)) < 0) left.push(`lane waiters that never expire: ${key}`);
  }
  return left;
}
