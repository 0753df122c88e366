import { ensureError } from "@konverge/core";
import {
  clusterRoot,
  openProducer,
  openSubscriber,
  type RedisTarget,
  runScript,
  withRedis,
} from "@konverge/redis";
import { leaveLaneScript } from "./scripts/leave-lane.ts";
import { takeLaneScript, type PassedObject, type LaneAnswer } from "./scripts/take-lane.ts";

/** What a holder leaves in Redis for the next one. */
export interface LaneLeft {
  readonly carry: PassedObject | undefined;
  /** A writer outside the lane changed the object meanwhile. */
  readonly stranger: boolean;
}

/** The lanes of one cluster in Redis, as one process sees them. */
export interface LaneStore {
  /** `rank`: of the most urgent writer of this process. */
  take(lane: string, rank: number): Promise<LaneAnswer>;
  renew(lane: string): Promise<LaneAnswer>;
  leave(lane: string, left: LaneLeft): Promise<void>;
  close(): void;
}

interface LaneStoreOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly cluster: string;
  /** Unique per process. */
  readonly processId: string;
  readonly holdMs: number;
  /** Longest age of a passed object that is reused without a read, in ms. */
  readonly carryMs: number;
  /** The same if a writer outside the lane changed the object within `strangerMs`. */
  readonly contestedCarryMs: number;
  readonly strangerMs: number;
  /** Called with a lane that was passed to this process. */
  readonly onHanded: (lane: string) => void;
  readonly onError: (error: Error) => void;
}

export function createLaneStore(options: LaneStoreOptions): LaneStore {
  const { prefix, cluster, processId, holdMs, onHanded, onError } = options;
  const root = clusterRoot(prefix, cluster);
  const redis = openProducer(options.redis);
  const subscriber = openSubscriber(options.redis);
  const channels = `${root}/lanes/`;
  const keysOf = (lane: string) => ({
    lane: `${root}/lane/${lane}`,
    waiting: `${root}/lane-waiting/${lane}`,
  });
  for (const connection of [redis, subscriber]) connection.on("error", onError);
  subscriber.on("message", (_channel: string, lane: string) => onHanded(lane));
  const subscribed = subscriber.subscribe(`${channels}${processId}`).then(
    () => undefined,
    // Without it a lane is passed on late, not never: a waiting process asks again when the holder's time is over.
    (error: unknown) => onError(ensureError(error)),
  );

  const ask = async (lane: string, mode: "take" | "renew", rank: number): Promise<LaneAnswer> => {
    await withRedis(redis, () => subscribed);
    const { carryMs, contestedCarryMs, strangerMs } = options;
    const args = { process: processId, holdMs, carryMs, mode, contestedCarryMs, strangerMs, rank };
    return await withRedis(redis, () =>
      runScript(redis, takeLaneScript, { keys: keysOf(lane), args }),
    );
  };

  return {
    take: (lane, rank) => ask(lane, "take", rank),
    renew: (lane) => ask(lane, "renew", 0),
    async leave(lane, { carry, stranger }) {
      const args = {
        process: processId,
        holdMs,
        carry: carry?.text ?? "",
        ageMs: carry?.ageMs ?? 0,
        channels,
        message: lane,
        stranger,
      };
      await runScript(redis, leaveLaneScript, { keys: keysOf(lane), args });
    },
    close() {
      redis.disconnect();
      subscriber.disconnect();
    },
  };
}
