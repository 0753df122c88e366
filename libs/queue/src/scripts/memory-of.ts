import { defineScript, readLua, replyText, type Script } from "@konverge/redis";

const signature = {
  name: "memory-of",
  /** Selects the server that has this key. */
  keys: ["_key"],
} as const;

/** Returns INFO memory. */
export const memoryScript: Script<typeof signature, string> = defineScript(signature, {
  lua: readLua(new URL("memory-of.lua", import.meta.url)),
  answer: replyText,
});
