import {
  clockPart,
  defineScript,
  readLua,
  replyList,
  replyNumber,
  type Script,
} from "@konverge/redis";

const signature = {
  name: "note-contention",
  /** The object's hash, with one field per pair; sorted sets of the hour's contended objects and ownership flips. */
  keys: ["contention", "hot", "flips"],
  args: {
    object: "text",
    /** Longest pause within an episode. */
    pauseMs: "number",
    retentionMs: "text",
    /** Most pairs kept. */
    most: "number",
    /** Most members of the sorted sets. */
    members: "number",
    /** Conflicts. */
    lost: "number",
  },
  /** `kind`: conflict or takeover. */
  each: { args: { kind: "text", manager: "text", path: "text", count: "number" } },
} as const;

/**
 * Counts conflicts with the managers of an object, and fields taken over from them. A pair is one manager and one field.
 * Returns, per pair, its count in the current episode.
 *
 * A pair's value is "count episode firstMs lastMs": the total, and the count since the last pause.
 */
export const noteContentionScript: Script<typeof signature, number[]> = defineScript(signature, {
  lua: readLua(new URL("note-contention.lua", import.meta.url)),
  include: [clockPart],
  answer: (reply) => replyList(reply).map(replyNumber),
});
