import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
import { MAX_RECHECKED } from "../code-version.ts";
import { codeFitsPart } from "./code-fits.ts";

const signature = {
  name: "workflow-announce-code",
  keys: ["codes", "blocked"],
  args: {
    /** Unique to the started worker. */
    worker: "text",
    /** The version of its code, and those that it accepts. */
    code: "text",
    /** Number of slots for runs of each group, or empty for no limit. */
    slots: "text",
    /** Prefix of the index by status. */
    statuses: "text",
  },
} as const;

/** Notes that a worker is live. The first time, sets the number of slots, and returns the ids of blocked runs, which its code may continue. */
export const announceCodeScript: Script<typeof signature, readonly string[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("announce-code.lua", import.meta.url)),
    include: [clockPart, codeFitsPart],
    constants: { MAX_RECHECKED },
    answer: replyTexts,
  },
);
