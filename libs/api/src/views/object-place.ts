import { namespaceField, NO_NAMESPACE } from "@konverge/core";

/** An object without its controller. */
export interface ObjectPlace {
  /** `plural.group`. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
}

/** The inverse of `contentionObject`. */
export function objectOf(object: string): ObjectPlace {
  const [resource = "", namespace = NO_NAMESPACE, name = ""] = object
    .split("/")
    .map(decodeURIComponent);
  return { resource, ...namespaceField(namespace), name };
}
