import type { Change } from "./patches.ts";

/** As `PATCHES`, for a restored Redis. */
export const RESTORE_PATCHES: Readonly<Record<"restore-hold", readonly Change[]>> = {
  /** Work of a restored Redis starts without an operator. */
  "restore-hold": [
    {
      file: "libs/queue/src/scripts/note-progress.lua",
      from: "if isPartial or (isKnown and at and at < known - tolerance) then",
      to: "if false then",
    },
    {
      file: "libs/queue/src/scripts/begin-attempt.lua",
      from: "local isRestored = oldestMs > 0 and",
      to: "local isRestored = false and",
    },
  ],
};
