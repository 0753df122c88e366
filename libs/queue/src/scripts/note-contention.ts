import { defineScript, readLua, replyList, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "note-contention",
  /** Of the object (hash, one field per pair); hot objects and flips of the hour (sorted sets). */
  keys: ["contention", "hot", "flips"],
  args: {
    object: "text",
    /** Longest time between two of one episode. */
    pauseMs: "number",
    retentionMs: "text",
    /** Most pairs kept. */
    most: "number",
    /** Most members of the sorted sets. */
    members: "number",
    /** Lost races. */
    lost: "number",
  },
  /** `kind`: conflict or takeover. */
  each: { args: { kind: "text", manager: "text", path: "text", count: "number" } },
} as const;

/**
 * Counts which managers won against us on an object, and from which we took fields. A pair is one manager and one field.
 * Returns, per pair, its count in this episode.
 *
 * A pair's value is "count episode firstMs lastMs": of all time, and since it began after a pause.
 */
export const noteContentionScript: Script<typeof signature, number[]> = defineScript(signature, {
  lua: readLua(new URL("note-contention.lua", import.meta.url)),
  answer: (reply) => replyList(reply).map(replyNumber),
});
