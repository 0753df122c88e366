import type { RunRef } from "../define/run-ref.ts";
import type { WaitTarget } from "../define/wait-target.ts";

/** A kind in one cluster, of which objects are waited for. */
export interface WaitedKind {
  readonly cluster: string;
  readonly apiVersion: string;
  readonly kind: string;
}

/** `<cluster>/<apiVersion>/<kind>/<namespace>/<name>`, each percent-encoded: no spaces, and four slashes. */
export function objectKeyOf(
  { cluster, apiVersion, kind, namespace, name }: WaitTarget,
  home: string,
): string {
  return `${encode(cluster ?? home, apiVersion, kind)}/${placeOf(namespace, name)}`;
}

/** The first three parts of such a key. */
export function parseKindKey(key: string): WaitedKind {
  const [cluster = "", apiVersion = "", kind = ""] = key.split("/").map(decodeURIComponent);
  return { cluster, apiVersion, kind };
}

/** The last two. */
export function placeOf(namespace: string | undefined, name: string): string {
  return encode(namespace ?? "", name);
}

/** A run among those of all workflows. A workflow's name has no slash. */
export function memberOf({ workflow, id }: RunRef): string {
  return `${workflow}/${id}`;
}

/** The run of an entry of the index, `<namespace>/<name>/<workflow>/<id>`. */
export function parseEntry(entry: string): RunRef {
  const [, , workflow = "", ...id] = entry.split("/");
  return { workflow, id: id.join("/") };
}

function encode(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join("/");
}
