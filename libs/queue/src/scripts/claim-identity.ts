import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

const signature = {
  name: "claim-identity",
  args: { worker: "text", ttlMs: "number" },
  /** The holders of a UID as `<cluster>/<worker>`, with an encoded cluster name, by the end of their claims. */
  each: { keys: ["holders"], args: { cluster: "text" } },
} as const;

/**
 * Claims UIDs of clusters for cluster names, or renews the claims. Returns, per UID, a holder with another name, or an empty text if
 * the worker holds it.
 */
export const claimIdentityScript: Script<typeof signature, readonly string[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("claim-identity.lua", import.meta.url)),
    include: [clockPart],
    answer: replyTexts,
  },
);
