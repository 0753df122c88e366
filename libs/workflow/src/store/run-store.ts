import type { RunActions } from "./run-actions.ts";
import type { RunJournalStore } from "./run-journal-store.ts";
import type { RunQueries } from "./run-queries.ts";

/** The store of runs: Redis, or memory in tests. */
export interface RunStore extends RunJournalStore, RunActions, RunQueries {}
