import {
  clockPart,
  defineScript,
  readLua,
  replyTagged,
  replyText,
  type Script,
} from "@konverge/redis";
import type { AuditChain } from "./audit-hash.ts";

/** How far a chain was delivered. */
interface ExportCursor {
  /** The last delivered ID; empty if none was delivered. */
  readonly id: string;
  /** The number of the last entry that was delivered or counted as lost; undefined before the first one. */
  readonly sequence: number | undefined;
}

export type ExportCursors = Readonly<Record<AuditChain, ExportCursor>>;

const signature = {
  name: "hold-export",
  keys: ["export"],
  args: { holder: "text", leaseMs: "number" },
  /** Cursors to store. */
  each: { args: { chain: "text", cursor: "text", sequence: "text", lost: "text" } },
} as const;

/**
 * Takes or renews the lease of a target, stores cursors and returns all; undefined if another process has the lease. Adds up the
 * entries that were lost.
 */
export const holdExportScript: Script<typeof signature, ExportCursors | undefined> = defineScript(
  signature,
  {
    lua: readLua(new URL("hold-export.lua", import.meta.url)),
    include: [clockPart],
    answer: (reply) => {
      const [kind, changes, refused, ...sequences] = replyTagged(reply);
      if (kind === "held") return undefined;
      const [ofChanges, ofRefused] = sequences
        .map(replyText)
        .map((text) => (text === "" ? undefined : Number(text)));
      return {
        changes: { id: replyText(changes), sequence: ofChanges },
        refused: { id: replyText(refused), sequence: ofRefused },
      };
    },
  },
);
