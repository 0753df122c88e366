import {
  defineScript,
  readLua,
  replyFlag,
  replyNumber,
  replyTagged,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";
import { limitStatePart } from "./limit-state.ts";

export type TakeAnswer =
  /** Redis has no rules of the limit: configure, then repeat the request. */
  | { readonly kind: "unset" }
  | { readonly kind: "granted"; readonly hasSlot: boolean; readonly called: readonly string[] }
  | { readonly kind: "wait"; readonly waitUs: number; readonly called: readonly string[] };

const signature = {
  name: "take-permit",
  keys: ["limit", "keys", "state", "slots", "line", "turns", "late"],
  args: { key: "text", waiter: "text", holder: "text", cost: "number", inPlaceUs: "number" },
} as const;

/** Gives a permit of a limit, or a place in its line. Returns the waiters that can come now, too. */
export const takePermitScript: Script<typeof signature, TakeAnswer> = defineScript(signature, {
  lua: readLua(new URL("take-permit.lua", import.meta.url)),
  include: [limitStatePart],
  answer: decode,
});

function decode(reply: Reply): TakeAnswer {
  const [kind, value, called] = replyTagged(reply);
  if (kind === "unset") return { kind };
  if (kind === "granted") return { kind, hasSlot: replyFlag(value), called: replyTexts(called) };
  return { kind: "wait", waitUs: replyNumber(value), called: replyTexts(called) };
}
