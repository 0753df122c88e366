import { defineScript, readLua, type Script } from "@konverge/redis";

const signature = {
  name: "forget-requesters",
  keys: [
    /** The marks of requests, by the names of users. */
    "requesters",
  ],
  each: {
    args: {
      name: "text",
      /** As read before the request was applied. */
      mark: "text",
    },
  },
} as const;

/** Removes users who have made no other request since their marks were read. */
export const forgetRequestersScript: Script<typeof signature, void> = defineScript(signature, {
  lua: readLua(new URL("forget-requesters.lua", import.meta.url)),
  answer: () => undefined,
});
