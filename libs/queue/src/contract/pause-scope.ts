import { formatKey, parseKey } from "@konverge/core";
import type { OperatorAction, Pause, PauseScope } from "./pause.ts";

/** Returns the field of a scope in the hash of pauses. */
export function fieldOfScope(scope: PauseScope): string {
  switch (scope.kind) {
    case "controller":
      return "*";
    case "namespace":
      return `n/${encodeURIComponent(scope.namespace)}`;
    case "key":
      return `k/${formatKey(scope.key)}`;
  }
}

/** Returns the fields of all scopes of a key, narrowest first. */
export function pauseFieldsOf(id: string): readonly string[] {
  return [`k/${id}`, `n/${namespaceOf(id)}`, "*"];
}

/** Decodes a field of the hash of pauses and its note. */
export function decodePause(field: string, note: string): Pause {
  const { atMs, by, reason } = JSON.parse(note) as OperatorAction & { readonly atMs: number };
  return { scope: scopeOfField(field), by, reason, since: new Date(atMs).toISOString() };
}

/** The inverse of {@link fieldOfScope}. */
function scopeOfField(field: string): PauseScope {
  if (field === "*") return { kind: "controller" };
  const text = field.slice(2);
  return field.startsWith("n/")
    ? { kind: "namespace", namespace: decodeURIComponent(text) }
    : { kind: "key", key: parseKey(text) };
}

/** Returns the encoded namespace segment of a key. */
export function namespaceOf(id: string): string {
  return id.split("/", 4)[3] ?? "";
}
