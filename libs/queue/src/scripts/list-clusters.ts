import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

const signature = {
  name: "list-clusters",
  keys: ["seen", "reports"],
  args: { ttlMs: "number" },
} as const;

/** Returns the recent reports of `reportClustersScript`. */
export const listClustersScript: Script<typeof signature, readonly string[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("list-clusters.lua", import.meta.url)),
    include: [clockPart],
    answer: replyTexts,
  },
);
