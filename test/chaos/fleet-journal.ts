import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface OfAttempt {
  /** The key, and the attempt's number. */
  readonly id: string;
  readonly epoch: number;
}

/** What a handler wrote down while it ran. */
export type JournalLine =
  /** `startedAtMs`: when it got the key, on the clock of Redis. */
  | (OfAttempt & {
      readonly kind: "begin";
      readonly startedAtMs: number;
      readonly worker: string;
    })
  | (OfAttempt & { readonly kind: "end" | "armed" })
  /** The API server acknowledged the count. `tries`: how often the change was made for it. */
  | (OfAttempt & {
      readonly kind: "wrote";
      readonly object: string;
      readonly stamp: string;
      readonly count: number;
      readonly tries: number;
    })
  /** Redis stored how it ended, or refused to since the key was another's. */
  | (OfAttempt & {
      readonly kind: "closed";
      readonly fenced: boolean;
      readonly outcome: string;
    });

export type Journaled = JournalLine & { readonly atUs: number };

/** Every worker's journal, in the order of time. A line that a dying process did not finish never happened. */
export function readJournals(folder: string): Journaled[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as Journaled)
    .toSorted((one, other) => one.atUs - other.atUs);
}

/** Now, on the clock of the journals. */
export const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);
