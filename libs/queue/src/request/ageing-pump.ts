import { ensureError } from "@konverge/core";
import { type RedisClient, runScript } from "@konverge/redis";
import { fairnessArguments, type Fairness } from "../contract/fairness.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { ageScript } from "../scripts/age.ts";
import { rebaseScript } from "../scripts/rebase.ts";

/** Keys and jobs per call, at about 5 us each in Redis. */
const AT_ONCE = 200;
/** Half of BullMQ's priority range; the other half is for waiting jobs. */
const REBASE_AFTER = 1_000_000;

const MAX_SLEEP_MS = 1_000;

export interface AgeingPump {
  stop(): Promise<void>;
}

export interface AgeingPumpOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  readonly fairness: Fairness;
  readonly onError: (error: Error) => void;
  /** Default a million. */
  readonly rebaseAfter?: number;
}

/** Moves keys that reached the aging time forward, and keeps priorities within BullMQ's limit. Runs in every worker. */
export function startAgeingPump(options: AgeingPumpOptions): AgeingPump {
  const { redis, names, fairness, onError, rebaseAfter = REBASE_AFTER } = options;
  const everyMs = Math.min(MAX_SLEEP_MS, Math.max(1, fairness.ageingMs / 20));
  const { ageMs, weights, tenants } = fairnessArguments(fairness);
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;

  const round = async () => {
    let more = false;
    try {
      const { fair, ageing } = names;
      const args = { hashes: names.keyRoot, bull: names.bullRoot, limit: AT_ONCE };
      const examined = await runScript(redis, ageScript, {
        keys: { fair, ageing },
        args: { ...args, ageMs, weights },
        each: tenants,
      });
      const isRebasing = await runScript(redis, rebaseScript, {
        keys: { fair },
        args: { ...args, after: rebaseAfter },
      });
      more = examined === AT_ONCE || isRebasing;
    } catch (error) {
      // Nothing is lost: due keys stay due.
      if (!stopped) onError(ensureError(error));
    }
    schedule(more ? 0 : everyMs);
  };
  const schedule = (afterMs: number) => {
    if (stopped) return;
    timer = setTimeout(() => {
      running = round();
    }, afterMs);
  };
  schedule(0);

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
