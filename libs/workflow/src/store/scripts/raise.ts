import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { GRACE_MS } from "./clock.ts";

const signature = {
  name: "workflow-raise",
  keys: ["run", "wakes"],
  args: {
    id: "text",
    /** Or empty. */
    steps: "text",
    /** Or empty. */
    bytes: "text",
  },
} as const;

const ANSWERS = ["raised", "low", "ended", "missing"] as const;

/** Raises the limits of a run. If one is lower than before, nothing is changed (`low`). */
export const raiseScript: Script<typeof signature, (typeof ANSWERS)[number]> = defineScript(
  signature,
  {
    lua: readLua(new URL("raise.lua", import.meta.url)),
    include: [endedPart, clockPart],
    constants: { GRACE_MS },
    answer: (reply) => replyWord(reply, ANSWERS),
  },
);
