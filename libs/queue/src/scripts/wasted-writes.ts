import { defineScript, readLua, replyList, replyTexts, type Script } from "@konverge/redis";

const signature = {
  name: "wasted-writes",
  args: {
    /** Members that are read of each set, highest scores first. */
    most: "number",
  },
  each: { keys: ["set"], args: {} },
} as const;

/** Returns, per sorted set, its members and scores in turn. Read-only. */
export const wastedWritesScript: Script<typeof signature, string[][]> = defineScript(signature, {
  lua: readLua(new URL("wasted-writes.lua", import.meta.url)),
  answer: (reply) => replyList(reply).map(replyTexts),
});
