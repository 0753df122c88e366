import { ensureError, KonvergeError } from "@konverge/core";
import {
  clusterRoot,
  openProducer,
  openSubscriber,
  type RedisTarget,
  runScript,
  withRedis,
} from "@konverge/redis";
import { leaveLaneScript, takeLaneScript } from "./scripts/lane.ts";

/** What one holder of a lane hands to the next: our last write of the object, and how old that knowledge is. */
export interface PassedObject {
  readonly text: string;
  readonly ageMs: number;
}

interface LaneLeft {
  readonly carry: PassedObject | undefined;
  /** Somebody who takes no turns wrote the object meanwhile. */
  readonly stranger: boolean;
}

type LaneAnswer =
  | { readonly kind: "held"; readonly carry: PassedObject | undefined }
  /** Another process holds it, for so long at most unless it prolongs. */
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "lost" };

/** The lanes of one cluster in Redis, as one process sees them. */
export interface LaneStore {
  take(lane: string): Promise<LaneAnswer>;
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
  /** Longest age of a carry that is worth a try. */
  readonly carryMs: number;
  /** The same where a stranger wrote the object within `strangerMs`. */
  readonly contestedCarryMs: number;
  readonly strangerMs: number;
  /** Told which lane was handed to this process. */
  readonly onHanded: (lane: string) => void;
  readonly onError: (error: Error) => void;
}

export function createLaneStore(options: LaneStoreOptions): LaneStore {
  const { prefix, cluster, processId, holdMs, onHanded, onError } = options;
  const root = clusterRoot(prefix, cluster);
  const redis = openProducer(options.redis);
  const subscriber = openSubscriber(options.redis);
  const channels = `${root}/lanes/`;
  const keysOf = (lane: string) => [`${root}/lane/${lane}`, `${root}/lane-waiting/${lane}`];
  for (const connection of [redis, subscriber]) connection.on("error", onError);
  subscriber.on("message", (_channel: string, lane: string) => onHanded(lane));
  const subscribed = subscriber.subscribe(`${channels}${processId}`).then(
    () => undefined,
    // Without it hand-overs are slow, no more: who waits asks again when the time is up.
    (error: unknown) => onError(ensureError(error)),
  );

  const ask = async (lane: string, mode: "take" | "renew"): Promise<LaneAnswer> => {
    await withRedis(redis, () => subscribed);
    const { carryMs, contestedCarryMs, strangerMs } = options;
    const args = [processId, holdMs, carryMs, mode, contestedCarryMs, strangerMs];
    const answer = (await withRedis(redis, () =>
      runScript(redis, takeLaneScript, keysOf(lane), args),
    )) as readonly [string, string | number | undefined, number | undefined];
    switch (answer[0]) {
      case "held": {
        const text = String(answer[1] ?? "");
        const carry = text === "" ? undefined : { text, ageMs: Number(answer[2]) };
        return { kind: "held", carry };
      }
      case "wait":
        return { kind: "wait", ms: Number(answer[1]) };
      case "lost":
        return { kind: "lost" };
      default:
        throw new KonvergeError("internal", `script take-lane answered ${String(answer[0])}`);
    }
  };

  return {
    take: (lane) => ask(lane, "take"),
    renew: (lane) => ask(lane, "renew"),
    async leave(lane, { carry, stranger }) {
      const known = [carry?.text ?? "", carry?.ageMs ?? 0];
      const args = [processId, holdMs, ...known, channels, lane, stranger ? 1 : 0];
      await runScript(redis, leaveLaneScript, keysOf(lane), args);
    },
    close() {
      redis.disconnect();
      subscriber.disconnect();
    },
  };
}
