import {
  defineScript,
  readLua,
  replyText,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";
import type { MutationRow } from "../mutation-rows.ts";

/** Most mutations that one call reads. */
const MAX_SCANNED = 500;
const FIELDS = 5;

const signature = {
  name: "mutation-list",
  keys: ["index"],
  args: {
    root: "text",
    /** Upper bound of the numbers, as in ZRANGEBYSCORE. */
    before: "text",
    /** Empty: all. */
    state: "text",
    limit: "number",
  },
} as const;

export interface ListedRows {
  readonly rows: readonly MutationRow[];
  /** The next `before`; empty at the end. */
  readonly next: string;
  readonly scanned: number;
}

/** Returns mutations, newest first. A page may have fewer than `limit`, or none, although others follow. */
export const listScript: Script<typeof signature, ListedRows> = defineScript(signature, {
  lua: readLua(new URL("list.lua", import.meta.url)),
  constants: { MAX_SCANNED },
  answer: decode,
});

function decode(reply: Reply): ListedRows {
  const [next, scanned, ...texts] = replyTexts(reply);
  const rows = texts.flatMap((text, at): readonly MutationRow[] => {
    if (at % FIELDS !== 0) return [];
    const [state = "", createdAt = "", endedAt = "", result = ""] = texts.slice(
      at + 1,
      at + FIELDS,
    );
    return [{ text, state, createdAt, endedAt, result }];
  });
  return { rows, next: replyText(next), scanned: Number(scanned) };
}
