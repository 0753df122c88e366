import type { OpenKind } from "../change/open-kind.ts";
import { findRestrictions } from "../change/find-restrictions.ts";
import type { NewMutation, Verdict } from "../store/mutation-store.ts";
import { failed } from "./plan-part.ts";

/**
 * Returns why the configuration of this worker does not allow a mutation. It was checked at submission, but the configuration may
 * have changed.
 */
export function findClosed(kinds: readonly OpenKind[], mutation: NewMutation): Verdict | undefined {
  const { group, resource, kind } = mutation.object;
  const open = kinds.find((known) => known.group === group && known.resource === resource);
  if (open === undefined) {
    const message = `${kind} is not open for mutations; add it to mutations.kinds of the configuration`;
    return failed("rejected", message, "kind_not_open");
  }
  const [issue] = findRestrictions(open, mutation);
  if (issue === undefined) return undefined;
  const message = `${issue.detail}; mutations.kinds of the configuration lists the open fields`;
  return failed("rejected", message, "invalid_request");
}
