import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { LOGS_KEPT_MS, MOST_LINES } from "../log-limits.ts";

const signature = {
  name: "workflow-append-log",
  keys: ["run", "logs"],
  args: {
    /** Empty for lines of a spread step, which any worker may append. */
    epoch: "text",
    /** Of the run that waits for the spread step, or empty: a later run may have its ID. */
    createdAt: "text",
    /** Number of lines of the function so far, which a replay logs again. */
    logged: "number",
  },
  /** Lines (JSON). */
  each: { args: { text: "text" } },
} as const;

/** Appends lines to the log of a run, and drops the oldest. `fenced`: another epoch holds the run, or it has ended. */
export const appendLogScript: Script<typeof signature, "appended" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("append-log.lua", import.meta.url)),
    include: [endedPart],
    constants: { MOST_LINES, LOGS_KEPT_MS },
    answer: (reply) => replyWord(reply, ["appended", "fenced"]),
  },
);
