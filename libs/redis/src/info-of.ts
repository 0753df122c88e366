import { replyText } from "./reply.ts";
import { defineScript, readLua, type Script } from "./script.ts";

const signature = { name: "info-of", keys: ["_key"] } as const;

/** Returns INFO server and INFO replication of the server that has the key. */
export const infoOfScript: Script<typeof signature, string> = defineScript(signature, {
  lua: readLua(new URL("info-of.lua", import.meta.url)),
  answer: replyText,
});
