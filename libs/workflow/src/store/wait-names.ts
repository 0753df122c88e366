import type { RunRef } from "../define/run-ref.ts";
import type { WaitTarget } from "../define/wait-target.ts";

/** A kind of awaited objects in one cluster. */
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

/** Parses the first three parts of an object's key. */
export function parseKindKey(key: string): WaitedKind {
  const [cluster = "", apiVersion = "", kind = ""] = key.split("/").map(decodeURIComponent);
  return { cluster, apiVersion, kind };
}

/** Returns the first three parts of an object's key. */
export function kindKeyOf(objectKey: string): string {
  return objectKey.split("/").slice(0, 3).join("/");
}

/** Formats the last two parts. */
export function placeOf(namespace: string | undefined, name: string): string {
  return encode(namespace ?? "", name);
}

/** Formats a run of any workflow. A workflow's name has no slash. */
export function memberOf({ workflow, id }: RunRef): string {
  return `${workflow}/${id}`;
}

/** Parses the run of an entry of the index, `<namespace>/<name>/<workflow>/<id>`. */
export function parseEntry(entry: string): RunRef {
  const [, , workflow = "", ...id] = entry.split("/");
  return { workflow, id: id.join("/") };
}

function encode(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join("/");
}
