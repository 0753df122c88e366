import { kindKeyOf } from "../store/wait-names.ts";
import type { WaitIndex } from "../waits/wait-index.ts";
import type { MemoryRuns } from "./memory-runs.ts";

/** The index of the runs in memory that wait for objects. */
export function createMemoryWaitIndex(runs: MemoryRuns): WaitIndex {
  const objects = () =>
    runs.waits().flatMap(({ run, objects: keys }) => [...keys].map((key) => ({ run, key })));
  const ofKind = (kind: string) => objects().filter(({ key }) => kindKeyOf(key) === kind);
  return {
    kinds: async () => [...new Set(objects().map(({ key }) => kindKeyOf(key)))],
    count: async (kind) => ofKind(kind).length,
    runsOf: async (kind, places) => {
      const wanted = new Set(places.map((place) => `${kind}/${place}`));
      return ofKind(kind).flatMap(({ run, key }) => (wanted.has(key) ? [run] : []));
    },
    async *allOf(kind) {
      yield ofKind(kind).map(({ run }) => run);
    },
  };
}
