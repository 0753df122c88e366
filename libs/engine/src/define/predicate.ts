import { jsonEquals, type ApiObject } from "@konverge/core";

/** A watched change of an object. `previous` is missing for a new object. */
export interface ObjectChange<T extends ApiObject = ApiObject> {
  readonly kind: "added" | "changed" | "deleted";
  readonly object: T;
  readonly previous?: T;
}

/** Returns true if a change requires a reconcile. */
export type Predicate<T extends ApiObject = ApiObject> = (change: ObjectChange<T>) => boolean;

/** A user request by `kubectl annotate`; passes every predicate. */
export const REQUESTED_AT = "konverge.dev/requested-at";

/** True if the spec changed. For kinds without a generation (ConfigMap, Secret, Node, ...), equal to {@link contentChanged}. */
export const generationChanged: Predicate = (change) => {
  const { object, previous } = change;
  if (previous === undefined) return true;
  if (object.metadata.generation === undefined) return contentChanged(change);
  return object.metadata.generation !== previous.metadata.generation;
};

/** True for every write, including those that change only `managedFields`. Causes a loop if the handler writes on every run. */
export const resourceVersionChanged: Predicate = ({ object, previous }) =>
  previous === undefined || object.metadata.resourceVersion !== previous.metadata.resourceVersion;

/**
 * True if anything except the resourceVersion and `managedFields` changed. Includes status changes, because many handlers read
 * the status of the objects that they own or watch, such as the ready replicas of a Deployment.
 */
export const contentChanged: Predicate = ({ object, previous }) =>
  previous === undefined ||
  !jsonEquals(object, {
    ...previous,
    metadata: {
      ...previous.metadata,
      resourceVersion: object.metadata.resourceVersion,
      managedFields: object.metadata.managedFields,
    },
  });

/** True if the status changed. Causes a loop if the handler writes its own status on every run. */
export const statusChanged: Predicate = ({ object, previous }) =>
  previous === undefined || !jsonEquals(statusOf(object), statusOf(previous));

/** True if the labels changed. */
export const labelsChanged: Predicate = ({ object, previous }) =>
  previous === undefined ||
  !jsonEquals(object.metadata.labels ?? {}, previous.metadata.labels ?? {});

/** True if the annotations changed. */
export const annotationsChanged: Predicate = ({ object, previous }) =>
  previous === undefined ||
  !jsonEquals(object.metadata.annotations ?? {}, previous.metadata.annotations ?? {});

/** True if one of the predicates is true. */
export const anyOf =
  <T extends ApiObject>(...predicates: readonly Predicate<T>[]): Predicate<T> =>
  (change) =>
    predicates.some((predicate) => predicate(change));

/** True if all predicates are true. */
export const allOf =
  <T extends ApiObject>(...predicates: readonly Predicate<T>[]): Predicate<T> =>
  (change) =>
    predicates.every((predicate) => predicate(change));

/** True if the predicate is false. */
export const not =
  <T extends ApiObject>(predicate: Predicate<T>): Predicate<T> =>
  (change) =>
    !predicate(change);

function statusOf(object: ApiObject & { readonly status?: unknown }): unknown {
  return object.status;
}

/**
 * True for changes that pass every predicate, which could lose them: creation, deletion and its start; for the reconciled kind,
 * also changed finalizers, another uid and a user request; for owned kinds, also changed owners, since the former and the new
 * owner must be reconciled. The addition of `ownFinalizer` does not count, because it is our own.
 */
export function alwaysPasses(
  change: ObjectChange,
  option: "for" | "owns" | "watches",
  ownFinalizer?: string,
): boolean {
  const { kind, object, previous } = change;
  if (kind === "deleted" || previous === undefined) return true;
  const now = object.metadata;
  const before = previous.metadata;
  if (now.deletionTimestamp !== before.deletionTimestamp) return true;
  switch (option) {
    case "watches":
      return false;
    case "owns":
      return !jsonEquals(now.ownerReferences, before.ownerReferences);
    case "for": {
      const known = before.finalizers ?? [];
      const expected = (now.finalizers ?? []).filter(
        (finalizer) => finalizer !== ownFinalizer || known.includes(finalizer),
      );
      return now.uid !== before.uid || !jsonEquals(expected, known) || isRequestedByPerson(change);
    }
  }
}

/** True if the annotation `konverge.dev/requested-at` has a new value. */
export function isRequestedByPerson({ object, previous }: ObjectChange): boolean {
  const requestedAt = object.metadata.annotations?.[REQUESTED_AT];
  return (
    requestedAt !== undefined && requestedAt !== previous?.metadata.annotations?.[REQUESTED_AT]
  );
}
