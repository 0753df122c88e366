import type { Change } from "./patches.ts";

const BATCH = "libs/mutations/src/worker/apply-batch.ts";
const JOURNAL = "libs/mutations/src/store/scripts/journal.lua";

/** A worker does not notice that another one has taken its object. */
const NO_HOLDER = [
  {
    file: JOURNAL,
    from: "if redis.call('HGET', lane, 'holder') ~= holder then return 'fenced' end",
    to: "",
  },
  {
    file: JOURNAL,
    from: "if redis.call('HEXISTS', lane, 'batch') == 0 then return 'fenced' end",
    to: "",
  },
  // A worker that notices in time that it lost the object sends nothing either.
  { file: BATCH, from: "    signal.throwIfAborted();\n    checkExpiry();\n", to: "" },
  {
    file: "libs/mutations/src/worker/mutation-worker.ts",
    from: "scoped({\n      signal,",
    to: "scoped({",
  },
] as const;

/** As `PATCHES`, for mutations. */
export const MUTATION_PATCHES = {
  /** A successor does not see that the write of its predecessor was made. */
  mutationMark: [
    {
      file: BATCH,
      from: "this.#open.find(({ id }) => id === mark)",
      to: "this.#open.find(() => false)",
    },
  ],
  /** A successor does not know the plans of its predecessor. */
  mutationJournal: [{ file: JOURNAL, from: "redis.call('HSET', lane, 'plans', plans)", to: "" }],
  /** A worker makes a change again that its successor has made. */
  mutationHolder: NO_HOLDER,
  /** A late write overwrites any state. */
  mutationGuard: [
    ...NO_HOLDER,
    {
      file: "libs/mutations/src/worker/send-plan.ts",
      from: "{ ...metadata, ...guardOf(read) }",
      to: "metadata",
    },
    {
      file: "libs/mutations/src/worker/send-plan.ts",
      from: "const options = subresource === undefined ? {} : { subresource };",
      to: "const options = { unguarded: true };",
    },
  ],
} as const satisfies Record<string, readonly Change[]>;

export type MutationPatchName = keyof typeof MUTATION_PATCHES;
