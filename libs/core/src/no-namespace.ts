/** Represents the namespace of cluster-scoped objects in keys, paths and search indexes. */
export const NO_NAMESPACE = "_";

/** Returns the namespace, or `_` for cluster-scoped objects. */
export function namespaceSegment(namespace: string | undefined): string {
  return namespace ?? NO_NAMESPACE;
}

/** The inverse of {@link namespaceSegment}, as a field to spread: `{ namespace }`, or `{}` for cluster-scoped objects. */
export function namespaceField(segment: string): { readonly namespace?: string } {
  return segment === NO_NAMESPACE ? {} : { namespace: segment };
}
