/**
 * Mistakes that controllers classically make, as seen in an attempt or in a row of them. The code is stable; docs/hints.md has
 * a section for each, with the cure.
 */
export const HINTS: Readonly<Record<HintCode, string>> = {
  already_exists: "a create failed since the object exists; look for it first, or take it over",
  cached_object_mutated: "a read object was changed in place; change it inside of kube.mutate",
  not_found_as_failure: "an object that is gone was treated as a failure; ask with kube.find",
  own_spec_written:
    "the handler writes the spec of the kind that it reconciles; that is for people",
  own_status_trigger: "the handler's own status writes start it again and again",
  own_write_trigger: "the handler's own writes start it again and again",
  ownership_flip: "a field goes to and fro between this controller and another manager",
  endless_requeue: "the handler asks to run again and again, and nothing changes",
  swallowed_conflict: "the handler caught a conflict and went on; let it pass",
};

export type HintCode =
  | "already_exists"
  | "cached_object_mutated"
  | "not_found_as_failure"
  | "own_spec_written"
  | "own_status_trigger"
  | "own_write_trigger"
  | "ownership_flip"
  | "endless_requeue"
  | "swallowed_conflict";

/** Where the hint is explained. */
export function hintDocs(code: HintCode): string {
  return `docs/hints.md#${code}`;
}
