import {
  defined,
  formatApiVersion,
  isJsonObject,
  jsonEquals,
  metadataOf,
  type JsonObject,
  type MutationOutcome,
} from "@konverge/core";
import { applyChanges } from "../change/apply-changes.ts";
import type { ApplyChange, DraftChange } from "../change/change.ts";
import { findFailedPrecondition } from "../change/preconditions.ts";
import type { NewMutation, Verdict } from "../store/mutation-store.ts";
import type { Plan } from "../store/plan.ts";
import type { BatchMutation } from "../store/redis-mutation-store.ts";

interface Planned {
  /** In the order of the mutations. */
  readonly verdicts: Plan["verdicts"];
  /** The object to write; absent if nothing changes. */
  readonly draft?: JsonObject;
}

interface Planning {
  readonly nowMs: number;
  /** Why the configuration of this worker does not allow a mutation. */
  readonly findRestriction: (mutation: BatchMutation) => Verdict | undefined;
  /** An earlier plan for the same mutations on the same version. What it has decided stays. */
  readonly prior?: Plan | undefined;
}

/**
 * Applies mutations in order to an object as it was read, or to its absence, and decides what becomes of each if the result is
 * written.
 */
export function planPart(
  mutations: readonly BatchMutation[],
  read: JsonObject | undefined,
  planning: Planning,
): Planned {
  let draft = read;
  let isChanged = false;
  const verdicts = mutations.map((mutation, at): readonly [string, Verdict] => {
    const decided = planning.prior?.verdicts[at]?.[1];
    if (decided !== undefined && !isWritten(decided.outcome)) return [mutation.id, decided];
    const context = { ...planning, read, draft };
    const refusal = decided === undefined ? refusalOf(mutation, context) : undefined;
    if (refusal !== undefined) return [mutation.id, refusal];
    const base = draft ?? newObject(mutation);
    const next = changed(base, mutation);
    if ("outcome" in next) return [mutation.id, next];
    const isNew = draft === undefined;
    const hasEffect = isNew || !jsonEquals(base, next.object);
    draft = next.object;
    isChanged ||= hasEffect;
    return [mutation.id, { outcome: hasEffect ? "applied" : "unchanged" }];
  });
  return { verdicts, ...(isChanged && draft !== undefined ? { draft } : {}) };
}

/** True if the mutation's change is part of the write, or the object already has it. */
export function isWritten(outcome: MutationOutcome): boolean {
  return outcome === "applied" || outcome === "unchanged";
}

/** Returns why a mutation does not apply to the draft. */
export function refusalOf(
  mutation: BatchMutation,
  {
    read,
    draft,
    nowMs,
    findRestriction,
  }: Omit<Planning, "prior"> & {
    readonly read: JsonObject | undefined;
    readonly draft: JsonObject | undefined;
  },
): Verdict | undefined {
  const { uid, preconditions, createIfMissing, changes } = mutation;
  if (hasExpired(mutation, nowMs)) {
    return failed("expired", "the deadline passed before the mutation was applied");
  }
  const restriction = findRestriction(mutation);
  if (restriction !== undefined) return restriction;
  if (uid !== undefined && read !== undefined && metadataOf(read)["uid"] !== uid) {
    return failed(
      "replaced",
      `the uid of the object is not ${uid}; the object was deleted and recreated`,
    );
  }
  const unmet = preconditions && findFailedPrecondition(draft, preconditions);
  if (unmet !== undefined) return failed("precondition_failed", unmet);
  const isAbsent = draft === undefined;
  const creates = (createIfMissing ?? false) !== false || changes[0]?.kind === "apply";
  if (isAbsent && (!creates || uid !== undefined)) {
    return failed("not_found", "the object does not exist, and the mutation does not create it");
  }
  return undefined;
}

export function hasExpired({ deadlineMs, createdAtMs }: BatchMutation, nowMs: number): boolean {
  return deadlineMs !== undefined && nowMs >= createdAtMs + deadlineMs;
}

export function failed(outcome: MutationOutcome, message: string, code: string = outcome): Verdict {
  return { outcome, error: { code, message } };
}

function changed(
  base: JsonObject,
  { changes }: NewMutation,
): { readonly object: JsonObject } | Verdict {
  const result = applyChanges(base, changes as readonly Exclude<DraftChange, ApplyChange>[]);
  if ("object" in result) return { object: result.object };
  return failed("rejected", result.refused, "invalid_draft");
}

/** The content of the first mutation, with the identity of the object. */
function newObject({ object, createIfMissing }: NewMutation): JsonObject {
  const content = isJsonObject(createIfMissing) ? createIfMissing : {};
  const { group, version, kind, namespace, name } = object;
  return {
    ...content,
    apiVersion: formatApiVersion(group, version),
    kind,
    metadata: {
      ...metadataOf(content),
      name,
      ...defined({ namespace }),
    },
  };
}
