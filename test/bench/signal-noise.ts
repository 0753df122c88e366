/**
 * Sends noise to a run, or values of the same size to Redis, at a constant rate. The argument is a `NoiseConfig` as JSON. It begins
 * with the first message, and exits when all is sent.
 */
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { openWorkflows, type RunRef } from "@konverge/workflow";
import { Redis } from "ioredis";

export interface NoiseConfig {
  readonly url: string;
  readonly prefix: string;
  readonly victim: RunRef;
  readonly signal: string;
  readonly count: number;
  readonly chars: number;
  readonly perSecond: number;
  /** `values` stores each text under one key instead. */
  readonly as: "signals" | "values";
}

const config = JSON.parse(process.argv[2] ?? "{}") as NoiseConfig;
const { url, prefix, victim, signal, count, chars, perSecond, as } = config;
const payload = "x".repeat(chars);
const redis = new Redis(url);
const runs = openWorkflows({ redis: { url }, prefix });
const send = async (n: number) => {
  if (as === "values") return await redis.set(`${prefix}:noise`, `${n} ${payload}`);
  // A full buffer rejects the signal, after it was sent.
  return await runs.signal(victim, signal, { payload }).catch(() => undefined);
};
await redis.ping();
process.send?.("ready");
await once(process, "message");
const beganMs = performance.now();
const sent: Promise<unknown>[] = [];
for (let n = 0; n < count; n += 1) {
  const leftMs = beganMs + (n * 1_000) / perSecond - performance.now();
  if (leftMs > 1) await setTimeout(leftMs);
  sent.push(send(n));
}
await Promise.all(sent);
await runs.close();
redis.disconnect();
process.disconnect();
