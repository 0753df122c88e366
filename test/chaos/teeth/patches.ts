/** A protection that a test build does without: one exact piece of one source file, replaced while it is loaded. */
export interface Patch {
  /** Under the root of the repository. */
  readonly file: string;
  readonly changes: readonly { readonly from: string; readonly to: string }[];
}

export const PATCHES = {
  /** An attempt whose key was taken over commits all the same. */
  fencing: {
    file: "libs/queue/src/scripts/end.ts",
    changes: [
      { from: "if h[1] ~= epoch then return { 'fenced', 0 } end", to: "" },
      { from: "if h[2] ~= ARGV[at + 1] then", to: "if false then" },
    ],
  },
  /** A key is handed out while another attempt of it runs. */
  lease: {
    file: "libs/queue/src/scripts/begin.ts",
    changes: [{ from: "if leftMs > 0 then return { 'busy', leftMs } end", to: "" }],
  },
  /** Nobody waits for the turn of others. */
  lane: {
    file: "libs/queue/src/scripts/lane.ts",
    changes: [
      {
        from: "if holder ~= '' and holder ~= process and untilMs > nowMs then",
        to: "if false then",
      },
    ],
  },
  /** What was handed on is taken for the truth: nothing checks that it still is. */
  carry: {
    file: "libs/kube/src/mutate.ts",
    changes: [
      {
        from: "await access.write(guard(patch, read))",
        to: "await access.write(isCarried ? patch : guard(patch, read))",
      },
    ],
  },
} as const satisfies Record<string, Patch>;

export type PatchName = keyof typeof PATCHES;
