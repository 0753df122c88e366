/**
 * Common handler problems, detected in one attempt or in several consecutive ones. The codes are stable; docs/hints.md has a
 * section for each, with a suggested fix.
 */
export const HINTS: Readonly<Record<HintCode, string>> = {
  already_exists: "create failed because the object exists; look for it first, or use apply",
  cached_object_mutated: "a read object was changed in place; change it inside kube.mutate",
  not_found_as_failure: "a missing object was treated as a failure; use kube.find",
  own_spec_written: "the handler writes the spec of its own kind; write the status instead",
  own_status_trigger: "the handler's own status writes trigger it repeatedly",
  own_write_trigger: "the handler's own writes trigger it repeatedly",
  ownership_flip: "this controller and another manager overwrite a field in turn",
  endless_requeue: "the handler requeues without end and without a change",
  swallowed_conflict: "the handler caught a conflict; let the error pass",
  missing_permission:
    "the worker's account lacks a permission; add it to the controller's permissions and apply the roles of konverge manifests",
};

export type HintCode =
  | "already_exists"
  | "cached_object_mutated"
  | "missing_permission"
  | "not_found_as_failure"
  | "own_spec_written"
  | "own_status_trigger"
  | "own_write_trigger"
  | "ownership_flip"
  | "endless_requeue"
  | "swallowed_conflict";

/** Returns the address of the explanation. */
export function hintDocs(code: HintCode): string {
  return `docs/hints.md#${code}`;
}
