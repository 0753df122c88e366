import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

interface BindingAnswer {
  /** The uid that owns the name. */
  readonly uid: string;
  /** The number of shards; undefined if the uid is another cluster's, or for any number. */
  readonly shards: string | undefined;
}

const signature = {
  name: "claim-binding",
  keys: ["uidKey", "shardsKey", "controllers"],
  args: { uid: "text", shards: "text" },
  /** Of the hash of controllers. */
  each: { args: { field: "text", value: "text" } },
} as const;

/**
 * Claims a cluster's name and its number of shards if they are free, and announces controllers if both match. One step, so
 * that a Redis that loses its data never has controllers without their binding.
 */
export const claimBindingScript: Script<typeof signature, BindingAnswer> = defineScript(signature, {
  lua: readLua(new URL("claim-binding.lua", import.meta.url)),
  answer: (reply) => {
    const [uid = "", shards] = replyTexts(reply);
    return { uid, shards };
  },
});
