import {
  defineScript,
  readLua,
  replyTagged,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";
import { limitStatePart } from "./limit-state.ts";

interface SettleAnswer {
  /** Slots whose lease has ended. */
  readonly lost: readonly string[];
  readonly called: readonly string[];
}

const signature = {
  name: "settle-permits",
  keys: ["limit", "keys", "state", "slots", "line", "turns", "late"],
  args: { key: "text" },
  each: {
    args: {
      /** `renew` or `release` a slot, or `leave` the queue. */
      action: "text",
      name: "text",
    },
  },
} as const;

/** Renews and releases slots of one key of a limit, and removes waiters. Without items it only calls those who can come. */
export const settlePermitsScript: Script<typeof signature, SettleAnswer> = defineScript(signature, {
  lua: readLua(new URL("settle-permits.lua", import.meta.url)),
  include: [limitStatePart],
  answer: decode,
});

function decode(reply: Reply): SettleAnswer {
  const [kind, lost, called] = replyTagged(reply);
  if (kind === "unset") return { lost: [], called: [] };
  return { lost: replyTexts(lost), called: replyTexts(called) };
}
