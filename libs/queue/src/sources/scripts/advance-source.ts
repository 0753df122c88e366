import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";

const signature = {
  name: "advance-source",
  keys: ["state", "versions"],
  args: { epoch: "number", cursor: "text", movesCursor: "flag" },
  each: {
    args: {
      /** The object. */
      id: "text",
      /** Empty: forgets the object. */
      version: "text",
    },
  },
} as const;

/** Stores the versions and the cursor of requested events. `fenced`, without a change, if another process has claimed the source. */
export const advanceSourceScript: Script<typeof signature, "advanced" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("advance-source.lua", import.meta.url)),
    include: [clockPart],
    answer: (reply) => replyWord(reply, ["advanced", "fenced"]),
  },
);
