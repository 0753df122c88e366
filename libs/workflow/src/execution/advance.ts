import type { RunRef } from "../define/run-ref.ts";
import type { StepRecord } from "../store/run-record.ts";

/** The record of a verb, or what the verb waits for. */
export type Advance =
  | StepRecord
  | {
      readonly waitUntilMs: number | undefined;
      /** What is missing, for users. */
      readonly message?: string;
      readonly child?: RunRef;
      /** The run as which the spread step is stored. */
      readonly spread?: RunRef;
      /** The limit that has no permit now; a wake-up may end the wait. */
      readonly limit?: string;
      /** Objects whose change ends the wait. */
      readonly objects?: readonly string[];
    };
