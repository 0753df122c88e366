/** A piece of a source file that is replaced while the file is loaded. It must be there exactly once. */
export interface Change {
  /** Under the root of the repository. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const END = "libs/queue/src/scripts/end.lua";

/** Test builds, each without one protection, whatever stands behind it included. */
export const PATCHES = {
  /** An attempt whose key was taken over commits all the same. */
  fencing: [
    { file: END, from: "if h[1] ~= epoch then return { 'fenced', 0 } end", to: "" },
    { file: END, from: "if h[2] ~= attempt.owner then", to: "if false then" },
  ],
  /** A key is handed out while another attempt of it runs. */
  lease: [
    {
      file: "libs/queue/src/scripts/begin-attempt.lua",
      from: "if leftMs > 0 then return { 'busy', leftMs } end",
      to: "",
    },
  ],
  /** Nobody waits for the turn of others. */
  lane: [
    {
      file: "libs/lanes/src/scripts/take-lane.lua",
      from: "if holder ~= '' and holder ~= process and untilMs > nowMs then",
      to: "if false then",
    },
  ],
  /** What was handed on is taken for the truth: nothing checks that it still is. */
  carry: [
    {
      file: "libs/kube/src/mutate/mutate.ts",
      from: "body: guard(patch, read)",
      to: "body: isGiven ? patch : guard(patch, read)",
    },
    // The client itself refuses a write that checks nothing.
    {
      file: "libs/kube/src/client/create-kube-client.ts",
      from: "preparePatch(type, target, { patch, options: through })",
      to: "preparePatch(type, target, { patch, options: { ...through, unguarded: true } })",
    },
  ],
} as const satisfies Record<string, readonly Change[]>;

export type PatchName = keyof typeof PATCHES;
