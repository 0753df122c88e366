import { namespaceSegment, NO_NAMESPACE, parseKey, type ObjectKey } from "@konverge/core";
import type { Place } from "../access/caller.ts";

/** Returns the place of a key. */
export function placeOf(key: ObjectKey | string): Place {
  const { cluster, controller, namespace } = typeof key === "string" ? parseKey(key) : key;
  return { cluster, controller, namespace: namespaceSegment(namespace) };
}

/** Returns the place of a request. An object without a namespace is cluster-scoped. */
export function placeNamed(named: {
  readonly cluster: string;
  readonly controller?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}): Place {
  const { cluster, controller, namespace, name } = named;
  return {
    cluster,
    controller,
    namespace: namespace ?? (name === undefined ? undefined : NO_NAMESPACE),
  };
}
