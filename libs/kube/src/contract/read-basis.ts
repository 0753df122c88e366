import type { JsonObject } from "@konverge/core";

/** A read from the API server. */
export type ServerRead =
  /** The newest version. */
  | { readonly kind: "mustRead" }
  /** This version or a later one, from the server's watch cache. Only a version of the same object. */
  | { readonly kind: "atLeast"; readonly version: string };

/** What a write may start from. */
export type ReadBasis =
  | ServerRead
  /**
   * This object, which was current a moment ago: the first try needs no read. Only a write is based on it, never the decision
   * that nothing must be written. `otherwise` applies after that, and if the object is too old or another one.
   */
  | { readonly kind: "from"; readonly object: JsonObject; readonly otherwise: ServerRead };

export const MUST_READ: ServerRead = { kind: "mustRead" };

export function atLeast(version: string | undefined): ServerRead {
  return version === undefined ? MUST_READ : { kind: "atLeast", version };
}

export function startFrom(object: JsonObject, otherwise: ServerRead = MUST_READ): ReadBasis {
  return { kind: "from", object, otherwise };
}
