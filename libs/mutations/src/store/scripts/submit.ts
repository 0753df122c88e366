import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
import { MAX_WAITING } from "../mutation-store.ts";
import { clockPart, GRACE_MS } from "./clock.ts";

const signature = {
  name: "mutation-submit",
  keys: ["sequence"],
  args: { root: "text" },
  each: {
    args: {
      id: "text",
      /** The new mutation (JSON). */
      text: "text",
      /** Mutations of one group can be one write. */
      group: "text",
      object: "text",
      /** 0: none. */
      deadlineMs: "number",
    },
  },
} as const;

/** Stores mutations in order. The answer for each is `created`, `full`, or the text stored under its id before. */
export const submitScript: Script<typeof signature, readonly string[]> = defineScript(signature, {
  lua: readLua(new URL("submit.lua", import.meta.url)),
  include: [clockPart],
  constants: { MAX_WAITING, GRACE_MS },
  answer: replyTexts,
});
