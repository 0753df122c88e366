import { CLUSTER_KINDS, KonvergeError, type RestoreKind } from "@konverge/core";
import { runScript, withRedis, type RedisClient } from "@konverge/redis";
import { readShards } from "../fleet/cluster-binding.ts";
import { acceptRestoreScript } from "../scripts/accept-restore.ts";
import {
  heldQueues,
  kindsIn,
  progressKeys,
  readRestoreState,
  restoreKey,
  tokensRestoreKey,
  type RestoreState,
} from "./restore-state.ts";

/** The restore states of an installation, for operators. All functions throw KonvergeError `redis_unavailable`. */
export interface RestoreControl {
  read(cluster: string): Promise<RestoreState>;
  readTokens(): Promise<RestoreState>;
  /**
   * Ends the hold of these kinds of state, and returns those still held. Work starts within seconds when all kinds that it depends on
   * are accepted.
   * @throws KonvergeError `invalid_request` if none of them is held
   */
  accept(
    cluster: string,
    kinds: readonly RestoreKind[],
    by: string,
  ): Promise<readonly RestoreKind[]>;
  /** The same for the tokens. */
  acceptTokens(by: string): Promise<void>;
}

export function createRestoreControl(redis: RedisClient, prefix: string): RestoreControl {
  const end = async (state: string, kinds: readonly RestoreKind[], by: string) => {
    const { accepted, held } = await withRedis(redis, () =>
      runScript(redis, acceptRestoreScript, {
        keys: { state },
        args: { kinds: kinds.join(" "), by },
      }),
    );
    if (accepted === "") {
      throw new KonvergeError(
        "invalid_request",
        `nothing is held for ${kinds.join(", ")}; list held state with \`konverge restore check\``,
      );
    }
    return kindsIn(held);
  };
  const read = (cluster: string) =>
    withRedis(redis, () => readRestoreState(redis, restoreKey(prefix, cluster)));
  return {
    read,
    readTokens: () => withRedis(redis, () => readRestoreState(redis, tokensRestoreKey(prefix))),
    async accept(cluster, kinds, by) {
      const { held, progressMs } = await read(cluster);
      const left = held.filter((kind) => !kinds.includes(kind));
      const stillHeld = heldQueues(left);
      const opened = heldQueues(held).filter((kind) => !stillHeld.includes(kind));
      if (opened.length > 0 && progressMs !== undefined) {
        // Before the hold ends: a worker that finds the old progress afterwards would hold the cluster again.
        const shards = await withRedis(redis, () => readShards(redis, prefix, cluster));
        const fields = opened.flatMap((kind) => [kind, progressMs]);
        for (const key of progressKeys(prefix, cluster, shards)) {
          await withRedis(redis, () => redis.hset(key, ...fields));
        }
      }
      return await end(
        restoreKey(prefix, cluster),
        kinds.filter((kind) => (CLUSTER_KINDS as readonly RestoreKind[]).includes(kind)),
        by,
      );
    },
    async acceptTokens(by) {
      await end(tokensRestoreKey(prefix), ["tokens"], by);
    },
  };
}
