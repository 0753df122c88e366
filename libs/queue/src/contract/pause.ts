import type { ObjectKey } from "@konverge/core";

/** The keys that a pause affects: all of a controller, those of a namespace (the tenant), or one. */
export type PauseScope =
  | { readonly kind: "controller" }
  | { readonly kind: "namespace"; readonly namespace: string }
  | { readonly kind: "key"; readonly key: ObjectKey };

/** The author and reason of an operator action, at most 200 characters each. Stored and visible to all users. */
export interface OperatorAction {
  readonly by: string;
  readonly reason: string;
}

/** A pause with its scope, author, reason and start (ISO 8601). */
export interface Pause extends OperatorAction {
  readonly scope: PauseScope;
  readonly since: string;
}
