import {
  clockPart,
  defineScript,
  readLua,
  replyList,
  replyNumber,
  type Script,
} from "@konverge/redis";
import type { Backlog } from "../contract/work-queue.ts";
import { askPart } from "./ask.ts";

const signature = {
  name: "backlog",
  /** `waiting`: BullMQ's waiting jobs. */
  keys: ["waiting", "index", "dead", "parked"],
  args: {
    /** Prefix of the key hashes. */
    hashes: "text",
    /** Prefix of BullMQ's keys. */
    bull: "text",
    /** Number of waiting keys among which a change is searched for. */
    most: "number",
  },
} as const;

/**
 * Counts all keys, the dead-lettered and the paused ones, and returns the waiting time of the first key and of the first one that was not
 * requested by resyncs alone. A key waits from its oldest request, but not while it backs off. Keys that reach the aging time start
 * first, so no key waits much longer than the first one. Changes precede the resyncs of a round, also those that have aged, so one
 * is found among the first keys.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of the key.
 */
export const backlogScript: Script<typeof signature, Backlog> = defineScript(signature, {
  lua: readLua(new URL("backlog.lua", import.meta.url)),
  include: [clockPart, askPart],
  answer(reply) {
    const [keys = 0, deadLettered = 0, paused = 0, headAgeMs = 0, changeAgeMs = 0] =
      replyList(reply).map(replyNumber);
    return { keys, deadLettered, paused, headAgeMs, changeAgeMs };
  },
});
