import { jsonEquals } from "@konverge/core";
import type { Change, Changes } from "../change/change.ts";
import { parseMutation } from "./mutation-rows.ts";
import type { NewMutation } from "./mutation-store.ts";

/** Returns what is kept of a mutation of a sensitive kind after its end: its identity, and kinds and paths of its changes. */
export function withoutValues(mutation: NewMutation): NewMutation {
  const { createIfMissing, preconditions: _preconditions, changes, ...rest } = mutation;
  return {
    ...rest,
    changes: changes.map(pathOf) as unknown as Changes,
    ...(createIfMissing === undefined ? {} : { createIfMissing: true }),
  };
}

/**
 * True if the stored text is that of the given mutation. The caller may be another one that repeats the mutation. The values of an
 * ended mutation of a sensitive kind are not compared.
 */
export function isSameMutation(stored: string, given: NewMutation): boolean {
  const known = identityOf(parseMutation(stored));
  const same = (other: NewMutation) =>
    jsonEquals(known, identityOf(parseMutation(JSON.stringify(other))));
  return same(given) || (parseMutation(stored).sensitive === true && same(withoutValues(given)));
}

function pathOf(change: Change) {
  return { kind: change.kind, ...("path" in change ? { path: change.path } : {}) };
}

function identityOf({ by: _by, sensitive: _sensitive, ...mutation }: NewMutation) {
  return mutation;
}
