import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { clockPart, GRACE_MS } from "./clock.ts";

/** Only `stored` means a change. */
export type SignalAnswer = "stored" | "duplicate" | "ended" | "full" | "missing";

const signature = {
  name: "workflow-signal",
  keys: ["run", "signals", "seen", "wakes"],
  args: {
    /** Of the run. */
    id: "text",
    signalId: "text",
    /** A JSON object that is not empty. */
    signal: "text",
    /** Most signals to buffer. */
    most: "number",
  },
} as const;

/** Buffers a signal for a run that has not ended. Its id keeps it from being stored twice. */
export const signalScript: Script<typeof signature, SignalAnswer> = defineScript(signature, {
  lua: readLua(new URL("signal.lua", import.meta.url)),
  include: [clockPart],
  constants: { GRACE_MS },
  answer: (reply) => replyWord(reply, ["stored", "duplicate", "ended", "full", "missing"]),
});
