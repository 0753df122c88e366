import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "raise-format",
  /** `workers`: the hash of live workers. */
  keys: ["formatKey", "workers"],
  args: {
    newest: "number",
    /** The format of workers that report none. */
    old: "number",
    /** Time after which a silent worker has gone, in ms. */
    ttlMs: "number",
    /** Time without older workers before the format is raised, in ms. */
    holdMs: "number",
  },
} as const;

/**
 * Raises the format of a cluster's data to the newest once no older worker has been alive for `holdMs`, so that a rollback remains
 * possible for that time, also after an earlier rollback. Returns the format. Times are those of Redis.
 */
export const raiseFormatScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("raise-format.lua", import.meta.url)),
  include: [clockPart],
  answer: replyNumber,
});
