import type { Change } from "./patches.ts";

const COMMIT = "libs/workflow/src/store/scripts/commit.lua";
const EPOCH = "if redis.call('HGET', run, 'epoch') ~= epoch then return { 'fenced' } end";

/** Whoever has lost a run goes on with it as if nothing had happened. */
const unfenced: readonly Change[] = [
  { file: COMMIT, from: EPOCH, to: "" },
  { file: "libs/workflow/src/store/scripts/note.lua", from: EPOCH, to: "" },
  {
    file: "libs/workflow/src/store/scripts/leave.lua",
    from: "if h[1] ~= epoch then return { 'fenced' } end",
    to: "",
  },
  // What stands before the scripts: the queue tells an attempt that its lease is gone.
  {
    file: "libs/workflow/src/execution/run-worker.ts",
    from: "stopped: attempt.signal",
    to: "stopped: new AbortController().signal",
  },
];

/** As `PATCHES`, of workflows. */
export const WORKFLOW_PATCHES: Readonly<Record<"fence" | "first-record", readonly Change[]>> = {
  fence: unfenced,
  /** And what it records replaces what its successor has recorded. */
  "first-record": [
    ...unfenced,
    { file: COMMIT, from: "if known then return { 'exists', known } end", to: "" },
  ],
};
