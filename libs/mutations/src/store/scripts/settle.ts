import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endMutationPart } from "./end-mutation.ts";

const signature = {
  name: "mutation-settle",
  keys: ["lane", "waiting", "objects"],
  args: {
    root: "text",
    object: "text",
    holder: "text",
    /** The plans of the rest of the batch that may still be written (JSON). */
    plans: "text",
  },
  each: {
    args: {
      id: "text",
      outcome: "text",
      /** The rest of the verdict (JSON). */
      result: "text",
    },
  },
} as const;

/** `empty`: the object has no more mutations, and no holder. */
type SettleAnswer = "held" | "empty" | "fenced";

/** Ends mutations of the batch. Repeated after a lost reply, it changes nothing. */
export const settleScript: Script<typeof signature, SettleAnswer> = defineScript(signature, {
  lua: readLua(new URL("settle.lua", import.meta.url)),
  include: [endMutationPart],
  answer: (reply) => replyWord(reply, ["held", "empty", "fenced"]),
});
