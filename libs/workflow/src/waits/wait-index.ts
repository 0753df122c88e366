import type { RedisClient } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import type { RunRef } from "../define/run-ref.ts";
import { parseEntry } from "../store/wait-names.ts";

/** Entries of one page. */
const PAGE = 1_000;
/** Sorts after every entry of a place, because workflows begin with a letter or a digit. */
const LAST = "~";

/** The index of the runs that wait for objects. */
export interface WaitIndex {
  /** Returns the keys of the awaited kinds. */
  kinds(): Promise<string[]>;
  /** Returns the number of awaited objects of a kind, counted once per run. */
  count(kind: string): Promise<number>;
  /** Returns the runs that wait for these objects, given as `<namespace>/<name>`. One round trip. */
  runsOf(kind: string, places: readonly string[]): Promise<RunRef[]>;
  /** Returns all runs that wait for an object of the kind, in pages. */
  allOf(kind: string): AsyncIterable<RunRef[]>;
}

/** `call` makes a call, with the caller's policy for an unavailable Redis. */
export function createWaitIndex(
  call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>,
  { prefix, cluster }: { readonly prefix: string; readonly cluster: string },
): WaitIndex {
  // The index spans all workflows, so no workflow is named.
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
