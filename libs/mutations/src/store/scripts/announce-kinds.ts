import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

/** Time after which a kind that no worker announces again is closed, in ms. Only a worker with other kinds closes it. */
const STALE_MS = 60_000;

const signature = {
  name: "mutation-announce-kinds",
  keys: ["kinds"],
  each: {
    args: {
      /** `plural.group`. */
      name: "text",
      /** The kind (JSON). */
      text: "text",
    },
  },
} as const;

/** Stores the open kinds of a worker. Without live workers they stay, so that mutations can still be submitted. */
export const announceKindsScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("announce-kinds.lua", import.meta.url)),
  include: [clockPart],
  constants: { STALE_MS },
  answer: replyNumber,
});
