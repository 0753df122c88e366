import { sleepMs } from "@konverge/core";
import { type Consumer, openConsumer, type RedisTarget } from "@konverge/redis";
import { PumpRounds, type PumpedQueue, type QueuePump } from "./pump-rounds.ts";

/** Time limit for the end of a round, in ms. */
const STOP_MS = 500;

/** A queue's pump, until it is stopped. */
export interface StartedPump extends Pick<
  QueuePump,
  "isElected" | "hasWaiting" | "hasActive" | "armed" | "began"
> {
  stop(): Promise<void>;
}

/**
 * The background rounds of all queues of one process: due timers, operator actions, and the election of the process that
 * also ages waiting keys. They share one connection, which is open while there is a queue.
 */
export class QueuePumps {
  readonly #target: RedisTarget;
  readonly #rounds = new Map<string, PumpRounds>();
  #consumer: Consumer | undefined;
  #pumps = 0;

  constructor(target: RedisTarget) {
    this.#target = target;
  }

  start(queue: PumpedQueue): StartedPump {
    const rounds = this.#roundsOf(queue);
    const pump = rounds.add(queue);
    this.#pumps += 1;
    let stopping: Promise<void> | undefined;
    return {
      get isElected() {
        return pump.isElected;
      },
      get hasWaiting() {
        return pump.hasWaiting;
      },
      get hasActive() {
        return pump.hasActive;
      },
      armed: (afterMs) => pump.armed(afterMs),
      began: () => pump.began(),
      stop: () => (stopping ??= this.#stop(rounds, pump)),
    };
  }

  #roundsOf({ names, onError }: PumpedQueue): PumpRounds {
    if (this.#consumer === undefined) {
      this.#consumer = openConsumer(this.#target);
      this.#consumer.redis.on("error", onError);
    }
    const rounds = this.#rounds.get(names.pumps) ?? new PumpRounds(this.#consumer.redis);
    this.#rounds.set(names.pumps, rounds);
    return rounds;
  }

  async #stop(rounds: PumpRounds, pump: QueuePump): Promise<void> {
    this.#pumps -= 1;
    // Without Redis, a round ends only when its connection is closed.
    const late = new AbortController();
    const deadline = sleepMs(STOP_MS, late.signal).catch(() => undefined);
    await Promise.race([rounds.remove(pump), deadline]);
    late.abort();
    if (this.#pumps > 0) return;
    this.#consumer?.disconnect();
    this.#consumer = undefined;
    this.#rounds.clear();
  }
}
