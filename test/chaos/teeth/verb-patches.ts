import type { Change } from "./patches.ts";

const NO_EPOCH = [
  {
    file: "libs/workflow/src/journal/run-journal.ts",
    from: "if (await this.#options.store.holds(this.held)) return;",
    to: "return;",
  },
  // A worker that notices in time that it lost the run sends nothing either.
  {
    file: "libs/workflow/src/verbs/verb-scope.ts",
    from: "whole.scoped({ signal, fieldManager:",
    to: "whole.scoped({ fieldManager:",
  },
] as const;
const MUTATE = "libs/workflow/src/verbs/mutate.ts";

/** As `PATCHES`, for the verbs of workflows. */
export const VERB_PATCHES = {
  /** A worker writes although its run was taken over. */
  epoch: NO_EPOCH,
  /** It also overwrites any state. */
  guard: [
    ...NO_EPOCH,
    {
      file: "libs/kube/src/mutate/mutate.ts",
      from: "body: guard(patch, read)",
      to: "body: patch",
    },
    {
      file: "libs/kube/src/client/create-kube-client.ts",
      from: "const options = defined({ subresource });",
      to: "const options = { ...defined({ subresource }), unguarded: true };",
    },
  ],
  /** A second try does not see the changes of the first. */
  mark: [{ file: MUTATE, from: "if (found !== undefined) return;", to: "" }],
  /** The mark of a step is removed before the step is recorded. */
  settled: [{ file: MUTATE, from: 'state === "settled" ||', to: "true ||" }],
} as const satisfies Record<string, readonly Change[]>;

export type VerbPatchName = keyof typeof VERB_PATCHES;
