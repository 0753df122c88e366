import { jsonEquals, type ApiObject } from "@konverge/core";

/** What a watch saw of one object. `previous` is absent when the object is new to us. */
export interface ObjectChange<T extends ApiObject = ApiObject> {
  readonly kind: "added" | "changed" | "deleted";
  readonly object: T;
  readonly previous?: T;
}

/** Whether a change is worth a reconcile. */
export type Predicate<T extends ApiObject = ApiObject> = (change: ObjectChange<T>) => boolean;

/** A person's request by `kubectl annotate`; always passes, whatever the predicate says. */
export const REQUESTED_AT = "konverge.dev/requested-at";

/** The spec changed; where a kind has no generation (ConfigMap, Secret, Node, Lease, ...) anything changed. */
export const generationChanged: Predicate = ({ object, previous }) => {
  if (previous === undefined) return true;
  if (object.metadata.generation === undefined)
    return resourceVersionChanged({ kind: "changed", object, previous });
  return object.metadata.generation !== previous.metadata.generation;
};

/** Anything changed, status and labels included. Loops when the handler writes on every run. */
export const resourceVersionChanged: Predicate = ({ object, previous }) =>
  previous === undefined || object.metadata.resourceVersion !== previous.metadata.resourceVersion;

export const labelsChanged: Predicate = ({ object, previous }) =>
  previous === undefined ||
  !jsonEquals(object.metadata.labels ?? {}, previous.metadata.labels ?? {});

export const annotationsChanged: Predicate = ({ object, previous }) =>
  previous === undefined ||
  !jsonEquals(object.metadata.annotations ?? {}, previous.metadata.annotations ?? {});

export const anyOf =
  <T extends ApiObject>(...predicates: readonly Predicate<T>[]): Predicate<T> =>
  (change) =>
    predicates.some((predicate) => predicate(change));

export const allOf =
  <T extends ApiObject>(...predicates: readonly Predicate<T>[]): Predicate<T> =>
  (change) =>
    predicates.every((predicate) => predicate(change));

export const not =
  <T extends ApiObject>(predicate: Predicate<T>): Predicate<T> =>
  (change) =>
    !predicate(change);

/**
 * What passes whatever a predicate says: deletion, a deletion mark, a change of finalizers, another uid, a person's request.
 * A generation predicate alone would lose all of them. `ownFinalizer` does not count when it was added: that was us.
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

/** True when the annotation `konverge.dev/requested-at` has a new value. */
export function isRequestedByPerson({ object, previous }: ObjectChange): boolean {
  const wish = object.metadata.annotations?.[REQUESTED_AT];
  return wish !== undefined && wish !== previous?.metadata.annotations?.[REQUESTED_AT];
}
