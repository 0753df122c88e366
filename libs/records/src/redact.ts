import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** Kinds whose whole content is secret: only the paths of their fields may be stored. */
const SENSITIVE = new Set(["secrets.", "secrets"]);
const MAX_TEXT = 200;
const MAX_ENTRIES = 30;
const REDACTED = "(redacted)";

/** True if the values of a resource (`plural.group`) must never leave the handler (P12). */
export function isSensitive(resource: string): boolean {
  return SENSITIVE.has(resource);
}

/**
 * Redacts a patch for storage: replaces the values of sensitive kinds, truncates strings at 200 characters, and lists and objects
 * at 30 members. The only place that prepares values for Redis, logs and pages.
 */
export function redactPatch(resource: string, patch: JsonObject): JsonObject {
  if (isSensitive(resource)) return hide(patch) as JsonObject;
  return cutTo(patch, { text: MAX_TEXT, entries: MAX_ENTRIES }) as JsonObject;
}

/** The metadata that identifies an object; not a secret, also of sensitive kinds. */
const IDENTITY = new Set([
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "finalizers",
  "ownerReferences",
]);
/** Repeats the whole object as text. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** Limits of an object to show, tried in order until its JSON has at most `MAX_OBJECT` characters. */
const OBJECT_LIMITS: readonly Limits[] = [
  { text: 4_000, entries: 500 },
  { text: 500, entries: 100 },
  { text: MAX_TEXT, entries: MAX_ENTRIES },
  { text: 40, entries: 10 },
];
const MAX_OBJECT = 200_000;

/**
 * Redacts an object to show: removes its managed fields and the copy that kubectl keeps. Of a sensitive object, only its identity
 * has values. Large values are truncated.
 */
export function redactObject(
  { apiVersion = "", kind = "", metadata = {}, ...content }: JsonObject,
  { sensitive }: { readonly sensitive: boolean },
): JsonObject {
  const identity = { apiVersion, kind };
  const meta = withoutCopies(isJsonObject(metadata) ? metadata : {});
  const whole = {
    ...identity,
    metadata: sensitive ? mapMembers(meta, hide, MAX_ENTRIES, IDENTITY) : meta,
    ...(sensitive ? mapMembers(content, hide) : content),
  };
  for (const limits of OBJECT_LIMITS) {
    const shown = cutTo(whole, limits) as JsonObject;
    if (JSON.stringify(shown).length <= MAX_OBJECT) return shown;
  }
  return { ...identity, "...": "(too large to show)" };
}

function withoutCopies({ managedFields: _managed, annotations, ...rest }: JsonObject): JsonObject {
  if (!isJsonObject(annotations)) return rest;
  const { [LAST_APPLIED]: _copy, ...others } = annotations;
  return Object.keys(others).length === 0 ? rest : { ...rest, annotations: others };
}

function hide(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value === null ? null : REDACTED;
  return mapMembers(value, hide);
}

interface Limits {
  /** Longest string. */
  readonly text: number;
  /** Most members of an object or entries of a list. */
  readonly entries: number;
}

function cutTo(value: JsonValue, limits: Limits): JsonValue {
  const { text, entries } = limits;
  if (typeof value === "string" && value.length > text) {
    return `${value.slice(0, text)}... (${value.length} characters)`;
  }
  const cut = (each: JsonValue) => cutTo(each, limits);
  if (Array.isArray(value)) {
    const kept = value.slice(0, entries).map(cut);
    return value.length > entries ? [...kept, `... (${value.length} entries)`] : kept;
  }
  return isJsonObject(value) ? mapMembers(value, cut, entries) : value;
}

function mapMembers(
  object: JsonObject,
  map: (value: JsonValue) => JsonValue,
  most: number = MAX_ENTRIES,
  unchanged: ReadonlySet<string> = new Set(),
): JsonObject {
  const entries = Object.entries(object);
  const kept = entries
    .slice(0, most)
    .map(([key, value]): [string, JsonValue] => [key, unchanged.has(key) ? value : map(value)]);
  if (entries.length > most) kept.push(["...", `(${entries.length} members)`]);
  return Object.fromEntries(kept);
}
