import { namespaceSegment } from "@konverge/core";

/** Returns the name of an object for contention notes. It is the same for all controllers and API versions. */
export function contentionObject(target: {
  /** `plural.group`. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  const { resource, namespace, name } = target;
  return [resource, namespaceSegment(namespace), name].map(encodeURIComponent).join("/");
}
