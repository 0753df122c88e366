import { defineScript, readLua, type Script } from "@konverge/redis";
import { limitRecordsPart } from "./limit-records.ts";

/** Plans that are kept of one object. */
const MOST_OF_OBJECT = 20;

const signature = {
  name: "store-plan",
  keys: [
    /** IDs of the plans of the object, newest first. */
    "plans",
    /** IDs of the plans of the cluster, by the time of their end. */
    "ages",
    /** Sizes by ID; their sum is in the empty field. */
    "sizes",
  ],
  args: {
    /** Prefix of the records. */
    records: "text",
    id: "text",
    record: "text",
    keptMs: "number",
  },
} as const;

/** Stores the record of a plan, and deletes the oldest records beyond the limits of its object and its cluster. */
export const storePlanScript: Script<typeof signature, void> = defineScript(signature, {
  lua: readLua(new URL("store-plan.lua", import.meta.url)),
  include: [limitRecordsPart],
  constants: { MOST_OF_OBJECT },
  answer: () => undefined,
});
