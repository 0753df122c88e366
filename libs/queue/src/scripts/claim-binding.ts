import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

interface BindingAnswer {
  /** The uid that owns the name. */
  readonly uid: string;
  /** The number of shards; undefined if the uid is another cluster's, the format is not usable, or for any number. */
  readonly shards: string | undefined;
  /** The format of the data; undefined if the uid is another cluster's. */
  readonly format: number | undefined;
}

const signature = {
  name: "claim-binding",
  keys: ["uidKey", "shardsKey", "formatKey", "controllers"],
  args: {
    uid: "text",
    shards: "text",
    /** The formats that the caller can use, and that of data without a stamp. */
    oldest: "number",
    newest: "number",
    old: "number",
  },
  /** Of the hash of controllers. */
  each: { args: { field: "text", value: "text" } },
} as const;

/**
 * Claims a cluster's name, the format of its data and its number of shards if they are free, and announces controllers if all
 * match. One step, so that a Redis that loses its data never has controllers without their binding.
 */
export const claimBindingScript: Script<typeof signature, BindingAnswer> = defineScript(signature, {
  lua: readLua(new URL("claim-binding.lua", import.meta.url)),
  answer: (reply) => {
    const [uid = "", shards, format = ""] = replyTexts(reply);
    return {
      uid,
      shards: shards === "" ? undefined : shards,
      format: format === "" ? undefined : Number(format),
    };
  },
});
