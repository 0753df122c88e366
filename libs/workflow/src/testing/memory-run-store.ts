import type { RunStore } from "../store/run-store.ts";
import { createMemoryRunActions } from "./memory-run-actions.ts";
import { createMemoryRunJournal } from "./memory-run-journal.ts";
import { createMemoryRunQueries } from "./memory-run-queries.ts";
import { MemoryRuns, type MemoryRunsOptions } from "./memory-runs.ts";

/** Stores runs in memory, by the rules of the scripts in Redis. */
export function createMemoryRunStore(options: MemoryRunsOptions): RunStore {
  return storeOf(new MemoryRuns(options));
}

/** The ports of one store. */
export function storeOf(runs: MemoryRuns): RunStore {
  return {
    ...createMemoryRunJournal(runs),
    ...createMemoryRunActions(runs),
    ...createMemoryRunQueries(runs),
  };
}
