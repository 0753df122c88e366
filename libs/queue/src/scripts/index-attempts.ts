import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

const signature = {
  name: "index-attempts",
  /** A stream. */
  keys: ["index"],
  args: {
    /** In bytes. */
    budget: "number",
    /** Most rows to return. */
    most: "number",
    /** Bytes to free beyond the budget. */
    beyond: "number",
  },
  /** Rows: `bytes` are those of the text and of its record. */
  each: { args: { text: "text", bytes: "number" } },
} as const;

/**
 * Adds rows to the search index and returns the oldest ones that are over the budget, oldest first: id and text of each in
 * turn. Each entry holds the bytes of all rows and records up to and with itself, so that what is kept is a difference of two
 * and needs no counter of its own.
 */
export const indexAttemptsScript: Script<typeof signature, string[]> = defineScript(signature, {
  lua: readLua(new URL("index-attempts.lua", import.meta.url)),
  // The first element is the number of bytes that are kept.
  answer: (reply) => replyTexts(reply).slice(1),
});
