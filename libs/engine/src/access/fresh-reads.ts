import { compareResourceVersions, type ApiObject, type JsonObject } from "@konverge/core";
import { isPart, startFrom, type ReadBasis } from "@konverge/kube";

/**
 * Objects that this attempt read a moment ago. A write of such an object needs no second read: it has the version as its
 * precondition, and a foreign change in between is an ordinary conflict. Parts of objects are ignored, because a write that
 * starts from one would remove the rest.
 */
export interface FreshReads {
  note<T extends ApiObject | undefined>(object: T): T;
  /** Notes an object of a list, which may come from a cache: its age is unknown. */
  noteListed<T extends ApiObject>(object: T): T;
  /** Returns an object read at most `maxAgeMs` ago (default: 100 ms), once per read: after a lost race or a write it is outdated. */
  take(target: object, maxAgeMs?: number): JsonObject | undefined;
}

/** Longest age, in ms. The older a read, the likelier its write conflicts, which costs a call instead of saving one. */
const FRESH_MS = 100;

export function createFreshReads(clock: () => number = () => performance.now()): FreshReads {
  const readAtMs = new WeakMap<object, number>();
  return {
    note(object) {
      if (object !== undefined && !isPart(object)) readAtMs.set(object, clock());
      return object;
    },
    noteListed(object) {
      if (!isPart(object)) readAtMs.set(object, -Infinity);
      return object;
    },
    take(target, maxAgeMs = FRESH_MS) {
      const atMs = readAtMs.get(target);
      readAtMs.delete(target);
      return atMs !== undefined && clock() - atMs <= maxAgeMs
        ? (target as unknown as JsonObject)
        : undefined;
    },
  };
}

/** Starts from `read` if it is newer than the object of the basis. If versions do not compare, the basis stays. */
export function preferNewer(basis: ReadBasis, read: JsonObject | undefined): ReadBasis {
  if (read === undefined) return basis;
  if (basis.kind !== "from") return startFrom(read, basis);
  const order = compareResourceVersions(versionOf(read), versionOf(basis.object));
  return order !== undefined && order > 0 ? startFrom(read, basis.otherwise) : basis;
}

function versionOf(object: JsonObject): string {
  return (object as unknown as ApiObject).metadata.resourceVersion ?? "";
}
