import {
  clockPart,
  defineScript,
  readLua,
  replyNumber,
  replyTagged,
  replyText,
  type Reply,
  type Script,
} from "@konverge/redis";
import { MAX_BATCH, MAX_BATCH_BYTES } from "../mutation-store.ts";
import { TAKEN_CHECK_MS } from "./clock.ts";

const signature = {
  name: "mutation-take",
  keys: ["lane", "waiting", "objects"],
  args: { root: "text", object: "text", holder: "text" },
} as const;

/** A batch as it is stored. */
export interface StoredBatch {
  /** True if an earlier holder has taken it. */
  readonly isInherited: boolean;
  /** By the clock of Redis. */
  readonly takenAtMs: number;
  /** The journaled plans (JSON). */
  readonly plans: string;
  /** Random id of this Redis. */
  readonly installation: string;
  readonly mutations: readonly { readonly text: string; readonly createdAtMs: number }[];
}

/**
 * Makes `holder` the only one that can write the journal of the object. Returns its batch: that of the last holder, or else up
 * to 64 waiting mutations of one group, and 512 KiB besides the first one.
 */
export const takeScript: Script<typeof signature, StoredBatch | undefined> = defineScript(
  signature,
  {
    lua: readLua(new URL("take.lua", import.meta.url)),
    include: [clockPart],
    constants: { MAX_BATCH, MAX_BATCH_BYTES, TAKEN_CHECK_MS },
    answer: decode,
  },
);

function decode(reply: Reply): StoredBatch | undefined {
  const [kind, takenAt, plans, installation, ...rows] = replyTagged(reply);
  if (kind === "empty") return undefined;
  const mutations = rows.flatMap((text, at) =>
    at % 2 === 0 ? [{ text: replyText(text), createdAtMs: replyNumber(rows[at + 1]) }] : [],
  );
  const isInherited = kind === "journaled";
  return {
    isInherited,
    takenAtMs: replyNumber(takenAt),
    plans: replyText(plans),
    installation: replyText(installation),
    mutations,
  };
}
