import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "keep-answer",
  /** `order`: sorted set of "name bytes" by time. `kept`: bytes kept. */
  keys: ["answer", "order", "kept"],
  args: {
    /** Prefix of the names of answers. */
    root: "text",
    name: "text",
    /** The stored value of the claim. */
    mark: "text",
    /** Empty to delete the claim. */
    value: "text",
    /** Bytes of the answer. */
    size: "text",
    keptMs: "number",
    /** In bytes. */
    budget: "number",
  },
} as const;

/**
 * Stores an answer, or deletes its claim, unless another claim or answer has the key. Older answers leave when they have
 * expired, or when the budget is exceeded, the oldest first. Returns how many left.
 */
export const keepAnswerScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("keep-answer.lua", import.meta.url)),
  include: [clockPart],
  answer: replyNumber,
});
