import type { RunRef } from "../run-ref.ts";
import type { WaitTarget } from "./wait-target.ts";

/** `<cluster>/<apiVersion>/<kind>/<namespace>/<name>`, each percent-encoded: no spaces, and four slashes. */
export function objectKeyOf(
  { cluster, apiVersion, kind, namespace, name }: WaitTarget,
  home: string,
): string {
  const parts = [cluster ?? home, apiVersion, kind, namespace ?? "", name];
  return parts.map(encodeURIComponent).join("/");
}

/** A run among those of all workflows. A workflow's name has no slash. */
export function memberOf({ workflow, id }: RunRef): string {
  return `${workflow}/${id}`;
}
