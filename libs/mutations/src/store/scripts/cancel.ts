import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import type { CancelAnswer } from "../mutation-store.ts";
import { endMutationPart } from "./end-mutation.ts";

const signature = {
  name: "mutation-cancel",
  keys: ["objects"],
  args: {
    root: "text",
    id: "text",
    /** The rest of the verdict (JSON). */
    result: "text",
  },
} as const;

/** Ends a mutation that no worker has taken. */
export const cancelScript: Script<typeof signature, CancelAnswer> = defineScript(signature, {
  lua: readLua(new URL("cancel.lua", import.meta.url)),
  include: [endMutationPart],
  answer: (reply) => replyWord(reply, ["cancelled", "applying", "ended", "missing"]),
});
