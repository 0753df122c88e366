import type { ObjectKey } from "@konverge/core";

/** What a pause holds back: all keys of a controller, those of one namespace (the tenant), or one key. */
export type PauseScope =
  | { readonly kind: "controller" }
  | { readonly kind: "namespace"; readonly namespace: string }
  | { readonly kind: "key"; readonly key: ObjectKey };

/** An order of a person. Both are kept and shown to all, in at most 200 characters each. */
export interface OperatorAction {
  readonly by: string;
  readonly reason: string;
}

/** What is paused, by whom and since when (ISO 8601). */
export interface Pause extends OperatorAction {
  readonly scope: PauseScope;
  readonly since: string;
}
