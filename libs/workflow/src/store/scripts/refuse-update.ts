import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { ANSWERS_KEPT_MS, MOST_ANSWERED } from "../run-updates.ts";
import { signalBufferPart } from "./signal-buffer.ts";

const signature = {
  name: "workflow-refuse-update",
  keys: ["run", "signals", "signalNames", "answers", "answeredIds"],
  args: {
    epoch: "text",
    /** Of the signal that carries it. */
    name: "text",
    seq: "text",
    /** Of the update. */
    id: "text",
    /** JSON. */
    refusal: "text",
  },
} as const;

/** Removes an update and keeps its refusal for the caller. `fenced`: another epoch holds the run, or it has ended. */
export const refuseUpdateScript: Script<typeof signature, "refused" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("refuse-update.lua", import.meta.url)),
    include: [endedPart, signalBufferPart],
    constants: { ANSWERS_KEPT_MS, MOST_ANSWERED },
    answer: (reply) => replyWord(reply, ["refused", "fenced"]),
  },
);
