/** Replaces a piece of a source file while it is loaded. The piece must occur exactly once. */
export interface Change {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const END = "libs/queue/src/scripts/end-attempt.lua";

/** Test builds without one protection, and without the checks behind it. */
export const PATCHES = {
  /** An attempt commits although its key was taken over. */
  fencing: [
    { file: END, from: "if h[1] ~= epoch then return 'fenced', 0 end", to: "" },
    { file: END, from: "if h[2] ~= attempt.owner then", to: "if false then" },
  ],
  /** A key gets a second attempt while one is running. */
  lease: [
    {
      file: "libs/queue/src/scripts/begin-attempt.lua",
      from: "if leftMs > 0 then return { 'busy', leftMs } end",
      to: "",
    },
  ],
  /** Writers do not wait in the lane. */
  lane: [
    {
      file: "libs/lanes/src/scripts/take-lane.lua",
      from: "if holder ~= '' and holder ~= process and untilMs > now then",
      to: "if false then",
    },
  ],
  /** A passed object is written without a precondition. */
  carry: [
    {
      file: "libs/kube/src/mutate/mutate.ts",
      from: "body: guard(patch, read)",
      to: "body: isGiven ? patch : guard(patch, read)",
    },
    // The client itself rejects a write without a precondition.
    {
      file: "libs/kube/src/client/create-kube-client.ts",
      from: "const options = defined({ subresource });",
      to: "const options = { ...defined({ subresource }), unguarded: true };",
    },
  ],
} as const satisfies Record<string, readonly Change[]>;

export type PatchName = keyof typeof PATCHES;
