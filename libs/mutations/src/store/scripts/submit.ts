import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
import { MAX_WAITING, MAX_WAITING_BYTES } from "../mutation-store.ts";
import { GRACE_MS } from "./clock.ts";

const signature = {
  name: "mutation-submit",
  keys: ["sequence"],
  args: { root: "text" },
  each: {
    args: {
      id: "text",
      /** The new mutation (JSON). */
      text: "text",
      /** Replaces the text at the end; empty to keep it. */
      kept: "text",
      /** Mutations of one group can be one write. */
      group: "text",
      object: "text",
      /** 0: none. */
      deadlineMs: "number",
    },
  },
} as const;

/** Stores mutations in order. The answer for each is `created`, `full`, `memory`, or the text stored under its id before. */
export const submitScript: Script<typeof signature, readonly string[]> = defineScript(signature, {
  lua: readLua(new URL("submit.lua", import.meta.url)),
  include: [clockPart],
  constants: { MAX_WAITING, MAX_WAITING_BYTES, GRACE_MS },
  answer: replyTexts,
});
