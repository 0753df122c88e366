import { defineScript, readLua, type Script } from "@konverge/redis";
import { nowPart } from "../../scripts/now.ts";
import { forgetPlanPart } from "./forget-plan.ts";

/** Plans that are kept of one object. */
const MOST_OF_OBJECT = 20;
/** Largest sum of the records of a cluster, in bytes. */
const MOST_BYTES = 67_108_864;
/** Plans that one call deletes at most of each kind, so that it does not block Redis for long. */
const MOST_FORGOTTEN = 200;

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
  args: { root: "text", id: "text", record: "text", keptMs: "number" },
} as const;

/** Stores the record of a plan, and deletes the oldest records beyond the limits of its object and its cluster. */
export const storePlanScript: Script<typeof signature, void> = defineScript(signature, {
  lua: readLua(new URL("store-plan.lua", import.meta.url)),
  include: [nowPart, forgetPlanPart],
  constants: { MOST_OF_OBJECT, MOST_BYTES, MOST_FORGOTTEN },
  answer: () => undefined,
});
