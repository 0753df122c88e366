import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { fairTagPart } from "./fair-tag.ts";
import { newsPart } from "./news.ts";

const signature = {
  name: "wake",
  keys: ["key", "fair"],
  args: { member: "text" },
} as const;

/**
 * Checks whether a key in a new backoff may start immediately, because of a new event during its attempt. Returns the
 * priority for its job, or 0.
 */
export const wakeScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("wake.lua", import.meta.url)),
  include: [clockPart, askPart, fairTagPart, newsPart],
  answer: replyNumber,
});
