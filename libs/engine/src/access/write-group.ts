import {
  cloneJson,
  compareResourceVersions,
  diffMergePatch,
  sleepMs,
  type ApiObject,
  type JsonObject,
} from "@konverge/core";
import type { ChangeDraft, MutateResult } from "@konverge/kube";

/** A change that waits to be written, with or without others. */
export interface WaitingChange {
  readonly change: ChangeDraft<ApiObject>;
  /** What the change must be made on: this object, at least at this version. */
  readonly uid: string | undefined;
  readonly floor: string | undefined;
  /** False once its attempt has ended or may not write any more. */
  readonly isOpen: () => boolean;
  /** Told that another writer has taken it along, and later what came of that. */
  readonly onTaken: (outcome: Promise<TakenOutcome>) => void;
}

/**
 * `alone`: it was left out, or nothing was written; it is to be written on its own. `failed`: what came of the call is not
 * known.
 */
export type TakenOutcome =
  | { readonly kind: "written"; readonly result: MutateResult<ApiObject> }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "alone" };

/**
 * The changes of one controller in one process that wait for their object's lane, by object. Whoever's turn comes takes the
 * others along: all changes are made one after the other on the same draft and written at once, as databases commit groups.
 */
export interface WriteGroups {
  /** Waits to be taken along, until the answer is called. */
  wait(id: string, change: WaitingChange): () => void;
  /** Takes those who wait and fit what the caller writes; `undefined` when there is nobody. */
  take(id: string, own: Pick<WaitingChange, "uid" | "floor">): Company | undefined;
}

/** The changes that are written along with one's own. */
export interface Company {
  /** The latest version that one's own change or one of theirs must be made on. */
  readonly floor: string | undefined;
  /** One's own change, and then theirs. A change of theirs that fails leaves no trace in the draft. */
  readonly join: (own: ChangeDraft<ApiObject>) => ChangeDraft<ApiObject>;
  /** Tells them what was written; answers one's own part of it. */
  settle(result: MutateResult<ApiObject>): MutateResult<ApiObject>;
  /** Sends them their own ways, or tells them how the call broke off. */
  dissolve(broken?: { readonly error: unknown }): void;
}

/** A group is no longer than what a merge patch of one hot object can reasonably hold. */
const MOST = 64;
/** A change only computes; one that takes longer is left to its own attempt, in ms. */
const CHANGE_MS = 250;
/** Of a large object every copy takes its time, and the lane waits for it, in ms; who is left out comes next. */
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
    take(id, { uid, floor }) {
      const fitting = [...(waiting.get(id) ?? [])]
        .filter((change) => change.isOpen() && (change.uid === undefined || change.uid === uid))
        .slice(0, MOST - 1);
      if (fitting.length === 0) return undefined;
      for (const change of fitting) remove(id, change);
      const atLeast = latest([floor, ...fitting.map((change) => change.floor)]);
      return createCompany(fitting, atLeast, clock);
    },
  };
}

interface Member {
  readonly change: WaitingChange;
  readonly settle: (outcome: TakenOutcome) => void;
  /** Its part of the last try: nothing when it was left out. */
  part: { readonly before: JsonObject; readonly patch: JsonObject | undefined } | undefined;
}

function createCompany(
  changes: readonly WaitingChange[],
  floor: string | undefined,
  clock: () => number,
): Company {
  const members = changes.map((change): Member => {
    const { promise, resolve } = Promise.withResolvers<TakenOutcome>();
    change.onTaken(promise);
    return { change, settle: resolve, part: undefined };
  });
  let own: Member["part"];

  return {
    floor,
    join: (change) => async (draft) => {
      const object = draft as unknown as JsonObject;
      const before = cloneJson(object);
      // What a try before this one wrote was not taken.
      for (const member of members) member.part = undefined;
      await change(draft);
      own = { before, patch: diffMergePatch(before, object) };
      const untilMs = clock() + JOINING_MS;
      for (const member of members) {
        member.part = clock() < untilMs ? await tryOn(object, member.change) : undefined;
      }
    },
    settle(result) {
      for (const { part, settle } of members) {
        settle(
          part === undefined
            ? { kind: "alone" }
            : { kind: "written", result: partOf(result, part) },
        );
      }
      return own === undefined ? result : partOf(result, own);
    },
    dissolve(broken) {
      for (const { part, settle } of members) {
        // Without a part it was not in what was sent.
        const isKnown = broken === undefined || part === undefined;
        settle(isKnown ? { kind: "alone" } : { kind: "failed", error: broken.error });
      }
    },
  };
}

/** Versions that do not compare are left to the preconditions of the write. */
function latest(floors: readonly (string | undefined)[]): string | undefined {
  let highest: string | undefined;
  for (const floor of floors) {
    if (floor === undefined) continue;
    if (highest === undefined || (compareResourceVersions(floor, highest) ?? 0) > 0)
      highest = floor;
  }
  return highest;
}

/** Makes a change on a copy, and keeps it when it worked. */
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
      // Its error is met again when it is written alone.
      done.catch(() => undefined);
      return undefined;
    }
  } catch {
    // It is made again alone, where its error is its attempt's.
    return undefined;
  } finally {
    late.abort();
  }
  for (const field of Object.keys(object)) delete object[field];
  Object.assign(object, copy);
  return { before, patch: diffMergePatch(before, object) };
}

/** What was written, as if this part had been written alone. */
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
