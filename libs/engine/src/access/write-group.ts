import {
  cloneJson,
  compareResourceVersions,
  diffMergePatch,
  isKonvergeError,
  KonvergeError,
  sleepMs,
  type ApiObject,
  type JsonObject,
} from "@konverge/core";
import { atLeast, type ChangeDraft, type MutateResult, type ServerRead } from "@konverge/kube";

/** A change that waits to be written, with or without others. */
export interface WaitingChange {
  readonly change: ChangeDraft<ApiObject>;
  /** The object that the change is for, and the read that it needs at least. */
  readonly uid: string | undefined;
  readonly read: ServerRead;
  /** False once its attempt has ended or must not write any more. */
  readonly isOpen: () => boolean;
  /** Called when another writer includes the change in its write; the promise is the result. */
  readonly onTaken: (outcome: Promise<TakenOutcome>) => void;
}

/** `alone`: it was left out, or nothing was written, and must be written on its own. `failed`: the result of the call is unknown. */
export type TakenOutcome =
  | { readonly kind: "written"; readonly result: MutateResult<ApiObject> }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "alone" };

/**
 * The changes of one controller in one process that wait for their object's lane, by object. The writer that gets the lane
 * includes the others: all changes are made one after the other on the same draft and written at once (group commit).
 */
export interface WriteGroups {
  /** Offers a change to other writers, until the returned function is called. */
  wait(id: string, change: WaitingChange): () => void;
  /** Takes the waiting changes that fit the caller's write; undefined if there are none. */
  take(id: string, own: Pick<WaitingChange, "uid" | "read">): Company | undefined;
}

/** The changes that are written together with the caller's own. */
export interface Company {
  /** The read that satisfies all of the changes. */
  readonly read: ServerRead;
  /** Makes the own change, then the others. A failing change of another writer leaves no trace in the draft. */
  readonly join: (own: ChangeDraft<ApiObject>) => ChangeDraft<ApiObject>;
  /** Settles the others; returns the own part of the result. */
  settle(result: MutateResult<ApiObject>): MutateResult<ApiObject>;
  /** Leaves the others to write on their own, or fails them with the error of an interrupted call. */
  dissolve(broken?: { readonly error: unknown }): void;
}

/** Largest group: as many changes as a merge patch of one object can reasonably hold. */
const MOST = 64;
/** Longest change, in ms. Changes only compute; a slower one is left to its own attempt. */
const CHANGE_MS = 250;
/** Longest time for all changes, in ms: copies of large objects are slow while the lane waits. The rest comes next. */
const JOINING_MS = 100;

export function createWriteGroups(clock: () => number = () => performance.now()): WriteGroups {
  const waiting = new Map<string, Set<WaitingChange>>();

  const remove = (id: string, change: WaitingChange) => {
    const group = waiting.get(id);
    group?.delete(change);
    if (group?.size === 0) waiting.delete(id);
  };

  return {
    wait(id, change) {
      const group = waiting.get(id) ?? new Set();
      group.add(change);
      waiting.set(id, group);
      return () => remove(id, change);
    },
    take(id, { uid, read }) {
      const fitting = [...(waiting.get(id) ?? [])]
        .filter((change) => change.isOpen() && (change.uid === undefined || change.uid === uid))
        .slice(0, MOST - 1);
      if (fitting.length === 0) return undefined;
      for (const change of fitting) remove(id, change);
      return createCompany(
        fitting,
        latestOf([read, ...fitting.map((change) => change.read)]),
        clock,
      );
    },
  };
}

/** A write without a response may have taken effect, and the change was left out when it was compared with the object. */
const UNKNOWN = new KonvergeError(
  "kube_unreachable",
  "the connection broke during a write together with other changes; the result of the write is unknown",
);

interface Member {
  readonly change: WaitingChange;
  readonly settle: (outcome: TakenOutcome) => void;
  /** Its part of the last try; undefined if it was left out. */
  part: { readonly before: JsonObject; readonly patch: JsonObject | undefined } | undefined;
  /** True if a try included it: a broken connection hides whether that try took effect. */
  wasIn: boolean;
}

function createCompany(
  changes: readonly WaitingChange[],
  read: ServerRead,
  clock: () => number,
): Company {
  const members = changes.map((change): Member => {
    const { promise, resolve } = Promise.withResolvers<TakenOutcome>();
    change.onTaken(promise);
    return { change, settle: resolve, part: undefined, wasIn: false };
  });
  let own: Member["part"];

  return {
    read,
    join: (change) => async (draft) => {
      const object = draft as unknown as JsonObject;
      const before = cloneJson(object);
      // The write of an earlier try was rejected.
      for (const member of members) member.part = undefined;
      await change(draft);
      own = { before, patch: diffMergePatch(before, object) };
      const untilMs = clock() + JOINING_MS;
      for (const member of members) {
        member.part = clock() < untilMs ? await tryOn(object, member.change) : undefined;
        member.wasIn ||= member.part !== undefined;
      }
    },
    settle(result) {
      for (const { part, wasIn, settle } of members) {
        if (part !== undefined) settle({ kind: "written", result: partOf(result, part) });
        else if (wasIn && result.kind === "unchanged") settle({ kind: "failed", error: UNKNOWN });
        else settle({ kind: "alone" });
      }
      return own === undefined ? result : partOf(result, own);
    },
    dissolve(broken) {
      const isUnknown = isKonvergeError(broken?.error) && broken.error.code === "kube_unreachable";
      for (const { part, wasIn, settle } of members) {
        // Without a part, it was not in the last request.
        const isKnown = broken === undefined || (part === undefined && !(isUnknown && wasIn));
        settle(isKnown ? { kind: "alone" } : { kind: "failed", error: broken.error });
      }
    },
  };
}

/** The latest required version. The preconditions of the write cover versions that do not compare. */
function latestOf(reads: readonly ServerRead[]): ServerRead {
  let highest: string | undefined;
  for (const read of reads) {
    if (read.kind === "mustRead") continue;
    const { version } = read;
    if (highest === undefined || (compareResourceVersions(version, highest) ?? 0) > 0) {
      highest = version;
    }
  }
  return atLeast(highest);
}

/** Makes a change on a copy, and keeps it if it succeeds. */
async function tryOn(
  object: JsonObject,
  { change, isOpen }: WaitingChange,
): Promise<Member["part"]> {
  if (!isOpen()) return undefined;
  const before = { ...object };
  const copy = cloneJson(object);
  const late = new AbortController();
  try {
    const done = Promise.resolve(change(copy as unknown as ApiObject)).then(() => true);
    const inTime = await Promise.race([
      done,
      sleepMs(CHANGE_MS, late.signal).then(
        () => false,
        () => false,
      ),
    ]);
    if (!inTime) {
      // The error occurs again when the change is written alone.
      done.catch(() => undefined);
      return undefined;
    }
  } catch {
    // The change is repeated alone, where its error fails its own attempt.
    return undefined;
  } finally {
    late.abort();
  }
  for (const field of Object.keys(object)) delete object[field];
  Object.assign(object, copy);
  return { before, patch: diffMergePatch(before, object) };
}

/** The result, as if this part had been written alone. */
function partOf(
  { kind, object, tries, lost, beforeVersion }: MutateResult<ApiObject>,
  { before, patch }: NonNullable<Member["part"]>,
): MutateResult<ApiObject> {
  if (kind === "unchanged" || patch === undefined) {
    return { kind: "unchanged", object, tries, lost, beforeVersion };
  }
  return {
    kind,
    object,
    tries,
    lost,
    beforeVersion,
    before: before as unknown as ApiObject,
    patch,
  };
}
