import { defineScript, readLua, type Script } from "@konverge/redis";
import { forgetRecordPart } from "./forget-record.ts";

const signature = {
  name: "drop-plan",
  /** As those of `store-plan`. */
  keys: ["plans", "ages", "sizes"],
  args: { records: "text", id: "text" },
} as const;

/** Deletes the record of a plan, which no longer counts towards the memory limit. */
export const dropPlanScript: Script<typeof signature, void> = defineScript(signature, {
  lua: readLua(new URL("drop-plan.lua", import.meta.url)),
  include: [forgetRecordPart],
  answer: () => undefined,
});
