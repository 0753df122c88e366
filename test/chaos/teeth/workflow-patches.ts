import type { Change } from "./patches.ts";

const RECORD = "libs/workflow/src/store/scripts/record-step.lua";
const FENCE = "if h[1] ~= epoch then return { 'fenced' } end";

/** A worker continues a run that it has lost. */
const unfenced: readonly Change[] = [
  { file: RECORD, from: FENCE, to: "" },
  {
    file: "libs/workflow/src/store/scripts/note.lua",
    from: "if h[1] ~= epoch or ended(h[2]) then return { 'fenced' } end",
    to: "",
  },
  {
    file: "libs/workflow/src/store/scripts/leave.lua",
    from: "if h[1] ~= call.epoch then return { 'fenced' } end",
    to: "",
  },
  // Before the scripts, the queue aborts an attempt that lost its lease.
  {
    file: "libs/workflow/src/execution/run-worker.ts",
    from: "stop: followAbort(attempt.signal),",
    to: "stop: new AbortController(),",
  },
];

/** As `PATCHES`, for workflows. */
export const WORKFLOW_PATCHES: Readonly<
  Record<"fence" | "first-record" | "pause", readonly Change[]>
> = {
  fence: unfenced,
  /** Executes paused runs. */
  pause: [
    {
      file: "libs/workflow/src/store/scripts/claim.lua",
      from: "if status == 'paused' then",
      to: "if false then",
    },
  ],
  /** Its records also replace those of its successor. */
  "first-record": [
    ...unfenced,
    { file: RECORD, from: "if known[1] then return { 'exists', known[1] } end", to: "" },
  ],
};
