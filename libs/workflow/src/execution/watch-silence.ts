import { ensureError, sleepMs } from "@konverge/core";
import type { Silence } from "../store/run-queries.ts";

/** Longest time between two reads, in ms. Each shows when the next body may be silent. */
const EVERY_MS = 5_000;
/** Shortest time, in ms: bodies of one moment are read together. */
const LEAST_MS = 250;
/** Longest wait for the last read at the end, in ms. */
const LAST_READ_MS = 1_000;

/** Calls `round` repeatedly, one at a time. The returned function ends that and waits for the last one. */
export type Repeat = (
  round: () => Promise<void>,
  everyMs: number,
  onError: (error: Error) => void,
) => () => Promise<void>;

export interface SilenceOptions {
  /** Returns the runs whose worker counts as lost. */
  readonly read: () => Promise<Silence>;
  /** Ends the lease of an execution, so that another worker continues the run. */
  readonly abandon: (id: string, lease: number) => Promise<unknown>;
  readonly onError: (error: Error) => void;
  /** For simulations. Default: timers, at the times at which a body may be silent. */
  readonly repeat?: Repeat;
}

/**
 * Finds runs whose body has sent no heartbeat in time. Every worker looks, since any may be the lost one. Returns a function that ends
 * this.
 */
export function watchSilence(options: SilenceOptions): () => Promise<void> {
  const { read, abandon, onError, repeat } = options;
  if (repeat !== undefined) return repeat(async () => void (await look()), EVERY_MS, onError);
  let isEnded = false;
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<void> = Promise.resolve();
  const round = async (): Promise<void> => {
    let nextMs: number | undefined;
    try {
      nextMs = await look();
    } catch (error) {
      onError(ensureError(error));
    }
    schedule(Math.min(EVERY_MS, Math.max(LEAST_MS, (nextMs ?? EVERY_MS) + 1)));
  };
  const schedule = (ms: number) => {
    if (isEnded) return;
    timer = setTimeout(() => {
      last = round();
    }, ms);
  };
  /** Returns the time until the next body may be silent. */
  async function look(): Promise<number | undefined> {
    const { lost, nextMs } = await read();
    await Promise.all(lost.map(({ id, lease }) => abandon(id, lease)));
    return nextMs;
  }
  schedule(LEAST_MS);
  return async () => {
    isEnded = true;
    clearTimeout(timer);
    await Promise.race([last, sleepMs(LAST_READ_MS)]);
  };
}
