import { isJsonObject, jsonEquals, parseJson, type JsonValue } from "@konverge/core";

/** A field with another value than in the recorded attempt. A missing value is undefined. */
export interface FieldDifference {
  /** For example `spec.replicas`. */
  readonly path: string;
  /** The value in the attempt. */
  readonly recorded: JsonValue | undefined;
  /** The value in the replay. */
  readonly replayed: JsonValue | undefined;
}

export interface SameOptions {
  /** Names and uids that the replay has drawn, with those that the server had drawn. */
  readonly drawn: ReadonlyMap<string, string>;
  /** Times that differ by at most this many ms count as equal. */
  readonly toleranceMs: number;
  /** True to compare the preconditions on versions and uids as well. */
  readonly withVersions: boolean;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const REDACTED = "(redacted)";
/** The start of the uids of objects that exist only in a replay. */
const PLACEHOLDER = "00000000-0000-4000-8000-";
const VERSIONS: ReadonlySet<string> = new Set(["resourceVersion", "uid"]);

/** Returns the fields of two bodies that differ. */
export function bodyDifferences(
  recorded: string | undefined,
  replayed: string | undefined,
  options: SameOptions,
): FieldDifference[] {
  const [before, after] = [recorded, replayed].map((body) => {
    const value = valueOf(body);
    return options.withVersions || value === undefined ? value : withoutVersions(value);
  });
  return differences(before, after, "", options);
}

function differences(
  recorded: JsonValue | undefined,
  replayed: JsonValue | undefined,
  path: string,
  options: SameOptions,
): FieldDifference[] {
  if (isSame(recorded, replayed, options)) return [];
  if (isJsonObject(recorded) && isJsonObject(replayed)) {
    const names = new Set([...Object.keys(recorded), ...Object.keys(replayed)]);
    return [...names].flatMap((name) =>
      differences(recorded[name], replayed[name], path === "" ? name : `${path}.${name}`, options),
    );
  }
  if (Array.isArray(recorded) && Array.isArray(replayed) && recorded.length === replayed.length) {
    return recorded.flatMap((item, index) =>
      differences(item, replayed[index], `${path}[${index}]`, options),
    );
  }
  return [{ path, recorded, replayed }];
}

function isSame(
  recorded: JsonValue | undefined,
  replayed: JsonValue | undefined,
  { drawn, toleranceMs }: SameOptions,
): boolean {
  if (recorded === undefined || replayed === undefined) return recorded === replayed;
  if (typeof recorded !== "string" || typeof replayed !== "string") {
    return jsonEquals(recorded, replayed);
  }
  if (recorded === replayed || drawn.get(replayed) === recorded) return true;
  if (replayed.startsWith(PLACEHOLDER) && recorded.length === replayed.length) return true;
  if (recorded.includes(REDACTED)) return matches(recorded, replayed);
  if (!TIME.test(recorded) || !TIME.test(replayed)) return false;
  return Math.abs(Date.parse(recorded) - Date.parse(replayed)) <= toleranceMs;
}

/** True if the texts are equal apart from redacted values. */
function matches(recorded: string, replayed: string): boolean {
  const parts = recorded.split(REDACTED);
  const last = parts.pop() ?? "";
  let rest = replayed;
  for (const [index, part] of parts.entries()) {
    const at = index === 0 ? (rest.startsWith(part) ? 0 : -1) : rest.indexOf(part);
    if (at === -1) return false;
    rest = rest.slice(at + part.length);
  }
  return rest.endsWith(last);
}

function valueOf(body: string | undefined): JsonValue | undefined {
  if (body === undefined) return undefined;
  try {
    return parseJson(body);
  } catch {
    return body;
  }
}

/** A write without its preconditions. */
function withoutVersions(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    return value.filter(
      (operation) =>
        !isJsonObject(operation) ||
        !/^\/metadata\/(resourceVersion|uid)$/.test(String(operation["path"])),
    );
  }
  if (!isJsonObject(value)) return value;
  const { metadata, preconditions: _preconditions, ...rest } = value;
  if (!isJsonObject(metadata)) return metadata === undefined ? rest : { ...rest, metadata };
  const kept = Object.entries(metadata).filter(([name]) => !VERSIONS.has(name));
  return kept.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(kept) };
}
