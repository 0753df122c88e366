import type { Trigger } from "@konverge/core";
import type { RequestOptions } from "../contract/work-queue.ts";

/** Longest uid and version, in characters. Uids have 36, comparable versions at most 20. */
const MAX_CHARS = 100;

/**
 * Returns the revision of the desired state that a requester saw, as text: the uid, a space, and the generation, `deleted`, or
 * `@` and the resourceVersion for a kind without generation. Empty if the requester did not see the object. A dead-lettered key
 * runs again for another revision.
 */
export function revisionOf(
  { generation, resourceVersion = "" }: Pick<Trigger, "generation" | "resourceVersion">,
  { uid = "", isDeleted = false }: Pick<RequestOptions, "uid" | "isDeleted">,
): string {
  const known = isWord(uid) ? uid : "";
  if (isDeleted) return `${known} deleted`;
  if (generation !== undefined) return `${known} ${generation}`;
  return known !== "" && isWord(resourceVersion) ? `${known} @${resourceVersion}` : "";
}

/** True if a text can be a part of a line of a key's hash. */
export function isWord(text: string): boolean {
  return text.length <= MAX_CHARS && /^[^\s,]+$/.test(text);
}
