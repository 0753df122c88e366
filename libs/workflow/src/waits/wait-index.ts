import type { RedisClient } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import type { RunRef } from "../define/run-ref.ts";
import { parseEntry } from "../store/wait-names.ts";

/** Entries read at once. */
const PAGE = 1_000;
/** Behind every entry of a place: workflows begin with a letter or a digit. */
const LAST = "~";

/** Who waits for which objects, as the runs of a cluster have entered it. */
export interface WaitIndex {
  /** Keys of the kinds that are waited for. */
  kinds(): Promise<string[]>;
  /** How many objects of the kind are waited for, counted once for each run. */
  count(kind: string): Promise<number>;
  /** The runs that wait for these objects, given as `<namespace>/<name>`. One round trip. */
  runsOf(kind: string, places: readonly string[]): Promise<RunRef[]>;
  /** All that wait for an object of the kind, by pages. */
  allOf(kind: string): AsyncIterable<RunRef[]>;
}

/** `call` makes a call, by the rules of who waits for it. */
export function createWaitIndex(
  call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>,
  { prefix, cluster }: { readonly prefix: string; readonly cluster: string },
): WaitIndex {
  // The index is of all workflows; their own names are not asked for.
  const { waitKinds, waitRoot } = runNames(prefix, cluster, "");
  return {
    kinds: () => call((redis) => redis.smembers(waitKinds)),
    count: (kind) => call((redis) => redis.zcard(waitRoot + kind)),
    async runsOf(kind, places) {
      const found = await call(
        async (redis) =>
          await Promise.all(
            places.map((place) =>
              redis.zrangebylex(waitRoot + kind, `[${place}/`, `(${place}/${LAST}`),
            ),
          ),
      );
      return found.flat().map(parseEntry);
    },
    async *allOf(kind) {
      for (let from = "-"; ;) {
        const begin = from;
        const entries = await call((redis) =>
          redis.zrangebylex(waitRoot + kind, begin, "+", "LIMIT", 0, PAGE),
        );
        if (entries.length > 0) yield entries.map(parseEntry);
        const last = entries.at(-1);
        if (last === undefined || entries.length < PAGE) return;
        from = `(${last}`;
      }
    },
  };
}
