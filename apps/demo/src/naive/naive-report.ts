import type { ActTotals } from "../load/act-controllers.ts";

export const NAIVE_AGENT = "naive-controllers";

/** The counts that the process logs when it stops. */
export type NaiveReport = Omit<ActTotals, "jobRetries">;
