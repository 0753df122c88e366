import { ensureError, sleepMs } from "@konverge/core";
import type { Silence } from "../store/run-queries.ts";

/** Longest time between two reads, in ms. Each shows when the next body may be silent. */
const EVERY_MS = 5_000;
/** Shortest time, in ms: bodies of one moment are read together. */
const LEAST_MS = 250;
/** Longest wait for the last read at the end, in ms. */
const LAST_READ_MS = 1_000;

export interface SilenceOptions {
  /** Returns the runs whose worker counts as lost. */
  readonly read: () => Promise<Silence>;
  /** Ends the lease of an execution, so that another worker continues the run. */
  readonly abandon: (id: string, lease: number) => Promise<unknown>;
  readonly onError: (error: Error) => void;
}

/**
 * Finds runs whose body has sent no heartbeat in time. Every worker looks, since any may be the lost one. Returns a function that ends
 * this.
 */
export function watchSilence({ read, abandon, onError }: SilenceOptions): () => Promise<void> {
  let isEnded = false;
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<void> = Promise.resolve();
  const round = async (): Promise<void> => {
    let nextMs: number | undefined;
    try {
      const silence = await read();
      ({ nextMs } = silence);
      await Promise.all(silence.lost.map(({ id, lease }) => abandon(id, lease)));
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
  schedule(LEAST_MS);
  return async () => {
    isEnded = true;
    clearTimeout(timer);
    await Promise.race([last, sleepMs(LAST_READ_MS)]);
  };
}
