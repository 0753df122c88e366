import {
  clockPart,
  defineScript,
  readLua,
  replyTagged,
  replyText,
  type Script,
} from "@konverge/redis";
import type { AuditChain } from "./audit-hash.ts";

/** The last delivered ID of each chain; empty if none was delivered. */
export type ExportCursors = Readonly<Record<AuditChain, string>>;

const signature = {
  name: "hold-export",
  keys: ["export"],
  args: { holder: "text", leaseMs: "number" },
  /** Cursors to store. */
  each: { args: { chain: "text", cursor: "text" } },
} as const;

/** Takes or renews the lease of a target, stores cursors and returns all; undefined if another process has the lease. */
export const holdExportScript: Script<typeof signature, ExportCursors | undefined> = defineScript(
  signature,
  {
    lua: readLua(new URL("hold-export.lua", import.meta.url)),
    include: [clockPart],
    answer: (reply) => {
      const [kind, changes, refused] = replyTagged(reply);
      if (kind === "held") return undefined;
      return { changes: replyText(changes), refused: replyText(refused) };
    },
  },
);
