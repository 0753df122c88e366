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
/** Longest time between two rounds of a queue in which nothing waits, in ms. A Redis that lost the weights gets them again. */
const IDLE_MS = 60_000;

export interface AgingPump {
  stop(): Promise<void>;
}

export interface AgingPumpOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  readonly fairness: Fairness;
  /** Whether this process serves the queue. The first round does not depend on it: it stores the weights. */
  readonly isElected: () => boolean;
  /** Whether keys of the queue wait. */
  readonly hasWaiting: () => boolean;
  readonly onError: (error: Error) => void;
  /** Default a million. */
  readonly rebaseAfter?: number;
}

/** Moves keys that reached the aging time forward, and keeps priorities within BullMQ's limit. One per queue is elected. */
export function startAgingPump(options: AgingPumpOptions): AgingPump {
  const { redis, names, fairness, onError, rebaseAfter = REBASE_AFTER } = options;
  const everyMs = Math.min(MAX_SLEEP_MS, Math.max(1, fairness.agingMs / 20));
  const { ageMs, weights, tenants } = fairnessArguments(fairness);
  let stopped = false;
  let lastMs = -Infinity;
  let timer: NodeJS.Timeout | undefined;

  const round = async () => {
    let more = false;
    lastMs = performance.now();
    try {
      const { fair, aging } = names;
      const args = { hashes: names.keyRoot, bull: names.bullRoot, limit: AT_ONCE };
      const examined = await runScript(redis, ageScript, {
        keys: { fair, aging },
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
      const isDue = options.hasWaiting() || performance.now() - lastMs >= IDLE_MS;
      if (isDue && options.isElected()) running = round();
      else schedule(everyMs);
    }, afterMs);
  };
  let running: Promise<void> = round();

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
