import type { Change } from "./patches.ts";

const NO_EPOCH = [
  {
    file: "libs/workflow/src/journal/run-journal.ts",
    from: "if (await store.holds(held)) return;",
    to: "return;",
  },
  // Whoever learns in time that it has lost the run sends nothing either.
  {
    file: "libs/workflow/src/verbs/verb-scope.ts",
    from: "whole.scoped({ signal, fieldManager:",
    to: "whole.scoped({ fieldManager:",
  },
] as const;
const MUTATE = "libs/workflow/src/verbs/mutate.ts";

/** As `PATCHES`, of the verbs of workflows. */
export const VERB_PATCHES = {
  /** A worker whose run was taken over writes all the same. */
  epoch: NO_EPOCH,
  /** And onto whatever is there. */
  guard: [
    ...NO_EPOCH,
    {
      file: "libs/kube/src/mutate/mutate.ts",
      from: "body: guard(patch, read)",
      to: "body: patch",
    },
    {
      file: "libs/kube/src/client/create-kube-client.ts",
      from: "preparePatch(type, target, { patch, options: through })",
      to: "preparePatch(type, target, { patch, options: { ...through, unguarded: true } })",
    },
  ],
  /** A second try does not see what the first has done. */
  mark: [{ file: MUTATE, from: "if (marks.some(({ name }) => name === marker)) return;", to: "" }],
  /** The mark of a step is taken away before the step is recorded. */
  settled: [{ file: MUTATE, from: 'state === "settled" ||', to: "true ||" }],
} as const satisfies Record<string, readonly Change[]>;

export type VerbPatchName = keyof typeof VERB_PATCHES;
