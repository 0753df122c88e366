import type { RedisClient } from "@konverge/redis";

export interface RedisRunStoreOptions {
  /** Makes a call, by the rules of who waits for it. */
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly prefix: string;
  readonly cluster: string;
  /** How long a run is kept after its end, in ms. */
  readonly retentionMs: number;
}
