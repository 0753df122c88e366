import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import {
  conflictRecord,
  fieldConflict,
  findOwners,
  ignoreNotFound,
  isFieldManagerConflict,
  type NewObject,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import { buildIntent, buildObject, isChild, type ObjectDraft } from "../define/new-object.ts";
import { handOut, noteSecrets } from "./attempt-reads.ts";
import type { AttemptTrace } from "./attempt-trace.ts";
import type { Attempt } from "./attempt.ts";
import { nameOf, resolveTarget } from "./resolve-target.ts";

/** The writes that need no lane, because none of them repeats a change after a conflict. */
export function createAttemptWrites(
  attempt: Attempt,
): Pick<AttemptKube, "create" | "delete" | "apply" | "replace"> {
  const { client, trace } = attempt;
  const { cache } = attempt.runtime;
  const ownNamespace = attempt.lease.key.namespace;
  return {
    create: <T extends ApiObject>(type: ResourceType<T>, object: ObjectDraft<T>) =>
      attempt.call(async () => {
        const wanted = buildObject(type, object, ownNamespace);
        noteSecrets(attempt, type, wanted);
        const created = await client.create(type, wanted);
        trace.noteWrite({ verb: "create", type, name: nameOf(created), object: created });
        cache.noteWrite(type, created);
        return handOut(attempt, type, created);
      }),
    delete: (object, { propagationPolicy, gracePeriodSeconds } = {}) =>
      attempt.call(async () => {
        const { type, name, uid } = await resolveTarget(client, object, ownNamespace);
        const deleted = await client
          .delete(type, name, defined({ uid, propagationPolicy, gracePeriodSeconds }))
          .then(() => true)
          .catch((error: unknown) => ignoreNotFound(error) ?? false);
        if (!deleted) return;
        trace.noteWrite({ verb: "delete", type, name, object });
        cache.noteDelete(type, object);
      }),
    apply: <T extends ApiObject>(
      type: ResourceType<T>,
      object: ObjectDraft<T> | NewObject<T> | T,
      { force }: { readonly force?: boolean } = {},
    ) =>
      attempt.call(async () => {
        const wanted = buildIntent(type, object, ownNamespace);
        noteSecrets(attempt, type, wanted);
        const how = { force: force ?? isChild(object, wanted, attempt.object) };
        const applied = await client.apply(type, wanted, how).catch((error: unknown) => {
          noteOwners(trace, type, wanted, error);
          throw isFieldManagerConflict(error) ? fieldConflict(error, labelOf(wanted)) : error;
        });
        trace.noteWrite({ verb: "apply", type, name: nameOf(applied), object: applied });
        cache.noteWrite(type, applied);
        return handOut(attempt, type, applied);
      }),
    replace: <T extends ApiObject>(object: T) =>
      attempt.call(async () => {
        const { type } = await resolveTarget<T>(client, object, ownNamespace);
        noteSecrets(attempt, type, object);
        const replaced = await client.replace(type, object);
        const { resourceVersion: fromVersion = "" } = object.metadata;
        // The server writes nothing if the object is already the same.
        if (replaced.metadata.resourceVersion !== fromVersion) {
          const name = nameOf(object);
          trace.noteWrite({ verb: "update", type, name, fromVersion, object: replaced });
          cache.noteWrite(type, replaced);
        }
        return handOut(attempt, type, replaced);
      }),
  };
}

function labelOf({ kind, metadata: { namespace, name } }: ApiObject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** The owners of the fields that an apply was rejected for are contention, even if the handler catches the error. */
function noteOwners(
  trace: AttemptTrace,
  type: ResourceType,
  object: ApiObject,
  error: unknown,
): void {
  const competingWriters = findOwners(error);
  if (competingWriters.length === 0) return;
  const ref = { ...type, ...nameOf(object) };
  const { resourceVersion: readVersion = "" } = object.metadata;
  trace.noteConflict(conflictRecord({ ref, readVersion, competingWriters }));
}
