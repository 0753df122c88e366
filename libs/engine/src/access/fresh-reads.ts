import { compareResourceVersions, type ApiObject, type JsonObject } from "@konverge/core";

/**
 * Objects as this attempt has read them a moment ago: a write of one of them need not read it a second time, since it
 * carries the version and a foreign change in between is a conflict like any other.
 */
export interface FreshReads {
  note<T extends ApiObject | undefined>(object: T): T;
  /** Once for each read: whoever lost a race on it, or wrote, must know better. */
  take(target: object): JsonObject | undefined;
}

/** Longest age, in ms. The older a read, the likelier it loses, and then it has cost a call instead of saving one. */
const FRESH_MS = 100;

export function createFreshReads(clock: () => number = () => performance.now()): FreshReads {
  const readAtMs = new WeakMap<object, number>();
  return {
    note(object) {
      if (object !== undefined) readAtMs.set(object, clock());
      return object;
    },
    take(target) {
      const atMs = readAtMs.get(target);
      readAtMs.delete(target);
      return atMs !== undefined && clock() - atMs <= FRESH_MS
        ? (target as unknown as JsonObject)
        : undefined;
    },
  };
}

/** The later state of one object; where versions do not compare, what the other writers say. */
export function newerOf(
  carried: JsonObject | undefined,
  read: JsonObject | undefined,
): JsonObject | undefined {
  if (carried === undefined || read === undefined) return carried ?? read;
  const order = compareResourceVersions(versionOf(read), versionOf(carried));
  return order !== undefined && order > 0 ? read : carried;
}

function versionOf(object: JsonObject): string {
  return (object as unknown as ApiObject).metadata.resourceVersion ?? "";
}
