import { defineScript, readLua, replyList, replyNumber, type Script } from "@konverge/redis";

const signature = { name: "waitingRequests", each: { keys: ["key"], args: {} } } as const;

/** Returns, per key, the number of its last request if no attempt has begun since, else 0. */
export const waitingRequestsScript: Script<typeof signature, number[]> = defineScript(signature, {
  lua: readLua(new URL("waiting-requests.lua", import.meta.url)),
  answer: (reply) => replyList(reply).map(replyNumber),
});
