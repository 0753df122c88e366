import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";

const signature = {
  name: "mutation-journal",
  keys: ["lane"],
  args: {
    holder: "text",
    /** All plans that may still be written (JSON). */
    plans: "text",
  },
} as const;

/** Stores the plans of the next write, before it is sent. `fenced`: another worker holds the object; nothing may be sent. */
export const journalScript: Script<typeof signature, "held" | "fenced"> = defineScript(signature, {
  lua: readLua(new URL("journal.lua", import.meta.url)),
  answer: (reply) => replyWord(reply, ["held", "fenced"]),
});
