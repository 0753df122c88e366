import {
  clockPart,
  defineScript,
  readLua,
  replyNumber,
  replyTagged,
  replyText,
  type Script,
} from "@konverge/redis";

/** The end of a chain in Redis. */
export interface AuditHead {
  /** The number of the last entry; 0 if there is none. */
  readonly sequence: number;
  readonly hash: string;
  /** The ID of the last entry of the chain. */
  readonly id: string;
}

type Appended =
  | { readonly kind: "added"; readonly nowMs: number }
  | {
      readonly kind: "moved";
      readonly nowMs: number;
      readonly head: AuditHead;
      /** The newest ID of the stream; empty if it has none. */
      readonly top: string;
    };

const signature = {
  name: "append-audit",
  keys: ["head", "stream"],
  args: {
    /** Sequence and hash of the head, and the newest ID, that the entries continue. */
    expected: "text",
    previous: "text",
    expectedTop: "text",
    /** Number of entries that are kept. */
    kept: "text",
  },
  each: { args: { id: "text", text: "text", sequence: "text", previous: "text", hash: "text" } },
} as const;

/** Appends entries if the chain has not changed since its head was read. Otherwise it returns the head. */
export const appendAuditScript: Script<typeof signature, Appended> = defineScript(signature, {
  lua: readLua(new URL("append-audit.lua", import.meta.url)),
  include: [clockPart],
  answer: (reply) => {
    const [kind, now, sequence, hash, id, top] = replyTagged(reply);
    const nowMs = replyNumber(now);
    if (kind === "added") return { kind, nowMs };
    const head = { sequence: replyNumber(sequence), hash: replyText(hash), id: replyText(id) };
    return { kind: "moved", nowMs, head, top: replyText(top) };
  },
});
