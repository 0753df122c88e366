/** What to do when a run with the same key has not ended. */
export type OnExisting = "attach" | "reject" | "supersede" | "queue";
