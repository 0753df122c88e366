import { defined } from "@konverge/core";
import type { Held } from "./run-journal-store.ts";
import type {
  Failing,
  Failure,
  RunStatus,
  RunView,
  StepProgress,
  StepRecord,
} from "./run-record.ts";

/** The format of an exported history. */
export const HISTORY_FORMAT = "konverge.dev/run-history/v1";

/** All that an execution reads of a run, as plain JSON: an export for a replay elsewhere. Times are epoch ms. */
export interface RunHistory extends JournalView {
  readonly format: typeof HISTORY_FORMAT;
  readonly workflow: string;
  /** Without workflow and cluster. */
  readonly id: string;
  /** Version of the code that started the run. */
  readonly version: number;
  /** The highest version of the code that has recorded steps, if that is another one. */
  readonly continuedBy?: number;
  readonly status: RunStatus;
  readonly createdAtMs: number;
  /** From 2; missing in the first round. The export has the records of this round. */
  readonly round?: number;
  /** Of this round. */
  readonly input?: unknown;
  /** The input as its schema parsed it, if that differs. */
  readonly parsedInput?: unknown;
  readonly result?: unknown;
  readonly error?: Failure;
  /** The status that the run gets when its steps are undone. */
  readonly failing?: Failing;
}

/** The journal of a run as plain JSON. */
export interface JournalView {
  /** The records, oldest first. */
  readonly steps: readonly NamedRecord[];
  /** The begun steps and waits without a record. */
  readonly progress: readonly (StepProgress & { readonly name: string })[];
}

export type NamedRecord = StepRecord & { readonly name: string };

export function historyOf(
  run: RunView,
  {
    steps,
    progress,
    parsedInput,
    failing,
    continuedBy,
  }: Pick<Held, "steps" | "progress" | "parsedInput" | "failing" | "continuedBy">,
): RunHistory {
  const { workflow, id, version, status, round, createdAtMs, input, result, error } = run;
  return {
    format: HISTORY_FORMAT,
    workflow,
    id,
    version,
    status,
    createdAtMs,
    ...defined({ round, input, parsedInput, result, error, failing, continuedBy }),
    ...journalOf({ steps, progress }),
  };
}

export function journalOf({ steps, progress }: Pick<Held, "steps" | "progress">): JournalView {
  return {
    steps: inOrder(steps),
    progress: [...progress]
      .map(([name, each]) => ({ name, ...each }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** Returns records with their names, oldest first. */
export function inOrder(steps: ReadonlyMap<string, StepRecord>): readonly NamedRecord[] {
  const records = [...steps].map(([name, record]) => ({ name, ...record }));
  return records.toSorted((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
}
