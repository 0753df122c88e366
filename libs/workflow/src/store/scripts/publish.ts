import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";

const signature = {
  name: "workflow-publish",
  keys: ["run"],
  args: {
    epoch: "text",
    /** All published values (JSON). */
    published: "text",
  },
} as const;

/**
 * Stores published values between two records. `fenced`: another epoch holds the run, or it has ended, and nothing was
 * changed.
 */
export const publishScript: Script<typeof signature, "published" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("publish.lua", import.meta.url)),
    include: [endedPart],
    answer: (reply) => replyWord(reply, ["published", "fenced"]),
  },
);
