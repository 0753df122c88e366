import { formatKey, parseKey } from "@konverge/core";
import type { OperatorAction, Pause, PauseScope } from "./pause.ts";

/** The field of a scope in the hash of pauses. */
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

/** The fields of all scopes that a key belongs to, the narrowest first. */
export function pauseFieldsOf(id: string): readonly string[] {
  return [`k/${id}`, `n/${namespaceOf(id)}`, "*"];
}

/** A field of the hash of pauses with its note. */
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

/** The namespace segment of a key as it is written there. */
export function namespaceOf(id: string): string {
  return id.split("/", 4)[3] ?? "";
}
