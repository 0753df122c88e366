import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { clusterRoot, runScript, withRedis, type RedisClient } from "@konverge/redis";
import type { PlanPlace } from "./plan-store.ts";
import { storePlanScript } from "./scripts/store-plan.ts";

/** The recordings of a cluster's attempts, at most 20 per key and 64 MiB in total. Kept for 7 days. */
export interface RecordingStore {
  /** Stores a recording, which is JSON. @throws KonvergeError `redis_unavailable` */
  store(key: string, epoch: number, recording: string): Promise<void>;
  /** Undefined if the attempt was not recorded, or its recording has expired. @throws as `store` */
  read(key: string, epoch: number): Promise<string | undefined>;
  /** Returns the numbers of the recorded attempts of a key, newest first. @throws as `store` */
  list(key: string): Promise<number[]>;
}

const KEPT_MS = 7 * 86_400_000;
const pack = promisify(gzip);
const unpack = promisify(gunzip);

export function createRecordingStore(
  redis: RedisClient,
  { prefix, cluster }: PlanPlace,
): RecordingStore {
  const root = `${clusterRoot(prefix, cluster)}/recordings`;
  const listOf = (key: string) => `${root}/of/${key}`;
  const idOf = (key: string, epoch: number) => `${key}#${epoch}`;
  return {
    async store(key, epoch, recording) {
      const record = (await pack(recording)).toString("base64");
      const keys = { plans: listOf(key), ages: `${root}/ages`, sizes: `${root}/sizes` };
      const args = { records: `${root}/plans/`, id: idOf(key, epoch), record, keptMs: KEPT_MS };
      await withRedis(redis, () => runScript(redis, storePlanScript, { keys, args }));
    },
    async read(key, epoch) {
      const stored = await withRedis(redis, () => redis.get(`${root}/plans/${idOf(key, epoch)}`));
      if (stored === null) return undefined;
      return (await unpack(Buffer.from(stored, "base64"))).toString("utf8");
    },
    async list(key) {
      const ids = await withRedis(redis, () => redis.lrange(listOf(key), 0, -1));
      return ids.map((id) => Number(id.slice(id.lastIndexOf("#") + 1)));
    },
  };
}
