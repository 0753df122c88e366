import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "report-clusters",
  /** Sorted set of workers by the time of their last report, and hash of reports by worker. */
  keys: ["seen", "reports"],
  args: { worker: "text", report: "text", ttlMs: "number" },
} as const;

/** Stores the clusters of a worker, and removes expired reports. Before Redis 7.4 the fields of a hash cannot expire. */
export const reportClustersScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("report-clusters.lua", import.meta.url)),
  include: [clockPart],
  answer: replyNumber,
});
