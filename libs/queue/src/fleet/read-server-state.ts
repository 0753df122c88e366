import { runScript, withRedis, type RedisClient } from "@konverge/redis";
import { clustersKey } from "../keys/queue-names.ts";
import { serverStateScript, type ReadServerState } from "../scripts/server-state.ts";

/** Returns the memory and replicas of Redis; on a Redis Cluster, of the node with the list of clusters. */
export async function readServerState(
  redis: RedisClient,
  prefix: string,
): Promise<ReadServerState> {
  return await withRedis(redis, () =>
    runScript(redis, serverStateScript, { keys: { _key: clustersKey(prefix) } }),
  );
}
