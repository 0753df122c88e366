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

/** True if the spec changed. For kinds without a generation (ConfigMap, Secret, Node, Lease, ...): if anything changed. */
export const generationChanged: Predicate = ({ object, previous }) => {
  if (previous === undefined) return true;
  if (object.metadata.generation === undefined)
    return resourceVersionChanged({ kind: "changed", object, previous });
  return object.metadata.generation !== previous.metadata.generation;
};

/** True if anything changed, including status and labels. Loops if the handler writes on every run. */
export const resourceVersionChanged: Predicate = ({ object, previous }) =>
  previous === undefined || object.metadata.resourceVersion !== previous.metadata.resourceVersion;

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

/**
 * True for changes that pass every predicate: deletion, a deletion timestamp, changed finalizers, another uid, a user request.
 * A generation predicate alone would lose all of them. The addition of `ownFinalizer` does not count, because it is our own.
 */
export function alwaysPasses(
  { kind, object, previous }: ObjectChange,
  ownFinalizer?: string,
): boolean {
  if (kind === "deleted" || previous === undefined) return true;
  const now = object.metadata;
  const before = previous.metadata;
  const known = before.finalizers ?? [];
  const expected = (now.finalizers ?? []).filter(
    (finalizer) => finalizer !== ownFinalizer || known.includes(finalizer),
  );
  return (
    now.uid !== before.uid ||
    now.deletionTimestamp !== before.deletionTimestamp ||
    !jsonEquals(expected, known) ||
    isRequestedByPerson({ kind, object, previous })
  );
}

/** True if the annotation `konverge.dev/requested-at` has a new value. */
export function isRequestedByPerson({ object, previous }: ObjectChange): boolean {
  const requestedAt = object.metadata.annotations?.[REQUESTED_AT];
  return (
    requestedAt !== undefined && requestedAt !== previous?.metadata.annotations?.[REQUESTED_AT]
  );
}
