import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface OfAttempt {
  /** The key, and the attempt's number. */
  readonly id: string;
  readonly epoch: number;
}

/** The journal entries of a handler. */
export type JournalLine =
  /** `startedAtMs`: the time at which it acquired the key, on the clock of Redis. */
  | (OfAttempt & {
      readonly kind: "begin";
      readonly startedAtMs: number;
      readonly worker: string;
    })
  | (OfAttempt & { readonly kind: "end" | "armed" })
  /** The API server acknowledged the count. `tries`: the number of tries for it. */
  | (OfAttempt & {
      readonly kind: "wrote";
      readonly object: string;
      readonly stamp: string;
      readonly count: number;
      readonly tries: number;
    })
  /** Redis stored the end, or rejected it because the key was taken over. */
  | (OfAttempt & {
      readonly kind: "closed";
      readonly fenced: boolean;
      readonly outcome: string;
    });

export type Journaled = JournalLine & { readonly atUs: number };

/** The journals of all workers in time order. Incomplete lines of dying processes do not count. */
export function readJournals(folder: string): Journaled[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as Journaled)
    .toSorted((one, other) => one.atUs - other.atUs);
}

/** Returns the current time on the clock of the journals. */
export const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);
