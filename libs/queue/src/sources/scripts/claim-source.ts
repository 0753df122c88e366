import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyText,
  type Script,
} from "@konverge/redis";

const signature = { name: "claim-source", keys: ["state"] } as const;

/** The right to advance a source. */
export interface SourceClaim {
  readonly epoch: number;
  readonly cursor: string | undefined;
}

/** Makes the caller the only one that can advance the source. */
export const claimSourceScript: Script<typeof signature, SourceClaim> = defineScript(signature, {
  lua: readLua(new URL("claim-source.lua", import.meta.url)),
  answer(reply) {
    const [epoch, cursor] = replyList(reply);
    const text = replyText(cursor);
    return { epoch: replyNumber(epoch), cursor: text === "" ? undefined : text };
  },
});
