import { replyList, replyNumber, type Reply } from "./reply.ts";
import { defineScript, readLua, type Script } from "./script.ts";

const signature = { name: "clock-of", keys: ["_key"] } as const;

/** Returns the time of the server that has the key, in microseconds since 1970. */
export const clockOfScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("clock-of.lua", import.meta.url)),
  answer: (reply: Reply) => {
    const [seconds, micros] = replyList(reply);
    return replyNumber(seconds) * 1e6 + replyNumber(micros);
  },
});
