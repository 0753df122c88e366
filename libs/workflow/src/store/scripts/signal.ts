import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { MOST_SEEN } from "../signal-limits.ts";
import { GRACE_MS } from "./clock.ts";
import { signalBufferPart } from "./signal-buffer.ts";

/** `buffered`: stored, and the run does not wait for it. */
export type SignalAnswer = "stored" | "buffered" | "duplicate" | "ended" | "full" | "missing";

const signature = {
  name: "workflow-signal",
  keys: ["run", "signals", "signalNames", "seen", "wakes"],
  args: {
    /** Of the run. */
    id: "text",
    /** Of the signal. */
    name: "text",
    signalId: "text",
    /** A JSON object that is not empty. */
    signal: "text",
    /** Most signals to buffer, and their size. */
    most: "number",
    mostBytes: "number",
  },
} as const;

/** Buffers a signal for a run that has not ended. Its id keeps it from being stored twice. */
export const signalScript: Script<typeof signature, SignalAnswer> = defineScript(signature, {
  lua: readLua(new URL("signal.lua", import.meta.url)),
  include: [endedPart, clockPart, signalBufferPart],
  constants: { GRACE_MS, MOST_SEEN },
  answer: (reply) =>
    replyWord(reply, ["stored", "buffered", "duplicate", "ended", "full", "missing"]),
});
