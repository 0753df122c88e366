import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
import { signalBufferPart } from "./signal-buffer.ts";

const signature = {
  name: "workflow-read-signals",
  keys: ["signals", "signalNames"],
  args: { name: "text", most: "number" },
} as const;

/** Returns the oldest unconsumed signals of one name: numbers and JSON texts in turn. */
export const readSignalsScript: Script<typeof signature, readonly string[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("read-signals.lua", import.meta.url)),
    include: [signalBufferPart],
    answer: replyTexts,
  },
);
