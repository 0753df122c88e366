import {
  clockPart,
  defineScript,
  readLua,
  replyNumber,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";

/** What one holder of a lane passes to the next: our last write of the object, and its age. */
export interface PassedObject {
  readonly text: string;
  readonly ageMs: number;
}

export type LaneAnswer =
  | {
      readonly kind: "held";
      readonly carry: PassedObject | undefined;
      /** For a renewal: the best rank of the processes that wait. */
      readonly wanted: number | undefined;
    }
  /** Another process holds it, for so long at most unless it renews. */
  | { readonly kind: "wait"; readonly ms: number }
  /** For a renewal that came too late. */
  | { readonly kind: "lost" };

const signature = {
  name: "take-lane",
  /** `waiting`: processes, first come first served. */
  keys: ["lane", "waiting"],
  args: {
    process: "text",
    holdMs: "number",
    /** Longest age of the carry. */
    carryMs: "number",
    /** take or renew. */
    mode: "text",
    /** Longest age where writers outside the lane were seen. */
    contestedCarryMs: "number",
    /** How long such a writer is remembered. */
    strangerMs: "number",
    /** Rank of the most urgent writer of this process, 0 first. */
    rank: "number",
  },
} as const;

/** Takes the lane of an object, renews it, or takes it when it was passed on. */
export const takeLaneScript: Script<typeof signature, LaneAnswer> = defineScript(signature, {
  lua: readLua(new URL("take-lane.lua", import.meta.url)),
  include: [clockPart],
  answer: decode,
});

function decode(reply: Reply): LaneAnswer {
  const [kind, first, second, third] = replyTagged(reply);
  if (kind === "held") {
    const text = replyText(first);
    const rank = replyText(third);
    return {
      kind,
      carry: text === "" ? undefined : { text, ageMs: replyNumber(second) },
      wanted: rank === "" ? undefined : Number(rank),
    };
  }
  if (kind === "wait") return { kind, ms: replyNumber(first) };
  return { kind: replyWord(kind, ["lost"]) };
}
