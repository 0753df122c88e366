import { createRedisRunActions } from "./redis-run-actions.ts";
import { createRedisRunJournal } from "./redis-run-journal.ts";
import { createRedisRunQueries } from "./redis-run-queries.ts";
import { RedisRuns, type RedisRunStoreOptions } from "./redis-runs.ts";
import type { RunStore } from "./run-store.ts";

export function createRedisRunStore(options: RedisRunStoreOptions): RunStore {
  const runs = new RedisRuns(options);
  return {
    ...createRedisRunJournal(runs),
    ...createRedisRunActions(runs),
    ...createRedisRunQueries(runs),
  };
}
