import type { Script, ScriptCall } from "@konverge/redis";
import type { RunRef } from "../define/run-ref.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { FencedError, type RunJournalStore } from "./run-journal-store.ts";
import { isEndStatus } from "./run-record.ts";

/** A call of the journal, as a function of the runs in Redis. */
export type JournalCall<Name extends keyof RunJournalStore> = RunJournalStore[Name] extends (
  ...args: infer Args
) => infer Reply
  ? (runs: RedisRuns, ...args: Args) => Reply
  : never;

export function hasEnded(status: string | null | undefined): boolean {
  return status === undefined || status === null || isEndStatus(status);
}

export function fenced({ workflow, id }: RunRef): FencedError {
  return new FencedError(`another execution holds the run ${workflow}/${id}`);
}

/** One of the items that a call of a script has. */
export type ScriptItem<Of extends Script> =
  ScriptCall<Of["signature"]> extends { readonly each: readonly (infer Each)[] } ? Each : never;
