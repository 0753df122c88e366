import { ensureError, KonvergeError } from "@konverge/core";
import { type RedisClient, runScript } from "@konverge/redis";
import type { QueueNames } from "../keys/queue-names.ts";
import { fireScript } from "../scripts/fire.ts";

/** Longest sleep, in ms: the longest delay of a timer that another process armed. */
const MAX_SLEEP_MS = 500;
const CLAIMED_AT_ONCE = 100;
/** Time after which another pump takes over a claim, in ms. */
const CLAIM_MS = 5_000;

export interface TimerPump {
  /** Reports a timer of this process that is due in `afterMs`. */
  armed(afterMs: number): void;
  stop(): Promise<void>;
}

export interface TimerPumpOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  /** Requests the key; the timer is acknowledged only when this resolves. */
  readonly fire: (id: string) => Promise<void>;
  /** Carries out operator actions; called while some are pending. */
  readonly carryOut: () => Promise<void>;
  readonly onError: (error: Error) => void;
}

/** Turns due timers into requests. Runs in every worker; claims in Redis prevent duplicates. */
export function startTimerPump(options: TimerPumpOptions): TimerPump {
  const { redis, names, fire, carryOut, onError } = options;
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let wakeAtMs = Infinity;

  const sleep = (ms: number) => {
    const atMs = performance.now() + ms;
    if (stopped || (timer !== undefined && atMs >= wakeAtMs)) return;
    clearTimeout(timer);
    wakeAtMs = atMs;
    timer = setTimeout(
      () => {
        timer = undefined;
        wakeAtMs = Infinity;
        running = running.then(round);
      },
      Math.max(1, ms),
    );
  };
  const round = async () => {
    if (stopped) return;
    let sleepMs = MAX_SLEEP_MS;
    try {
      const { timers, firing, resuming, aborts } = names;
      const { waitMs, ordered, due } = await runScript(redis, fireScript, {
        keys: { timers, firing, resuming, aborts },
        args: { limit: CLAIMED_AT_ONCE, claimMs: CLAIM_MS },
      });
      if (ordered) await carryOut();
      await Promise.all(
        due.map(async (id) => {
          await fire(id).catch((error: unknown) => {
            // Not written by Konverge, and invalid on every retry.
            if (!isInvalidKey(error)) throw error;
            onError(error);
          });
          await redis.zrem(names.firing, id);
        }),
      );
      if (waitMs >= 0) sleepMs = Math.min(waitMs, MAX_SLEEP_MS);
      if (due.length === CLAIMED_AT_ONCE) sleepMs = 0;
    } catch (error) {
      // Claims without an acknowledgement become due again.
      if (!stopped) onError(ensureError(error));
    }
    sleep(sleepMs);
  };
  sleep(0);

  return {
    armed: sleep,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

function isInvalidKey(error: unknown): error is KonvergeError {
  return error instanceof KonvergeError && error.code === "invalid_key";
}
