import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { MOST_REFUSALS } from "../signal-limits.ts";
import { signalBufferPart } from "./signal-buffer.ts";

const signature = {
  name: "workflow-refuse-signals",
  keys: ["run", "signals", "signalNames", "refusals"],
  args: {
    epoch: "text",
    /** Of all the signals. */
    name: "text",
  },
  each: {
    args: {
      seq: "text",
      /** What users see (JSON), without the payload. */
      text: "text",
    },
  },
} as const;

/**
 * Removes signals whose payload does not fit. They are no records: the run counts them and keeps the last few for users.
 * `fenced`: another epoch holds the run, or it has ended, and nothing was changed.
 */
export const refuseSignalsScript: Script<typeof signature, "refused" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("refuse-signals.lua", import.meta.url)),
    include: [endedPart, signalBufferPart],
    constants: { MOST_REFUSALS },
    answer: (reply) => replyWord(reply, ["refused", "fenced"]),
  },
);
