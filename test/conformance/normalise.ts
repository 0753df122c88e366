import { isJsonObject, isRawNumber, type JsonObject, type JsonValue } from "@konverge/core";

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
/** Versions inside texts; elsewhere a number is not recognizable as a version. */
const VERSION_IN_TEXT =
  /((?:resource version: |in record \(|precondition \(|resourceVersion\\?":\\?")"?)(\d+)/g;
const TOO_OLD = /too old resource version: \d+ \(\d+\)/g;
/** Versions of the whole store, which other writers also advance. */
const CURRENT_VERSION = /current: \d+/g;
const GENERATED_NAME = /(-gen-)[bcdfghjklmnpqrstvwxz2456789]{5}/g;

/**
 * Replaces values that differ between servers by symbols in order of their first appearance. Uids and versions keep
 * their identity within one case; times and generated names do not. A version older than an earlier one is marked as
 * such. The version of a list or bookmark is that of the whole store, which the server's own writes advance; only
 * whether it is older than an object before is kept.
 */
export class Normaliser {
  readonly #uids: Map<string, string> = new Map();
  readonly #versions: Map<string, string> = new Map();

  value(value: JsonValue, key = ""): JsonValue {
    if (typeof value === "string") return this.#text(value, key);
    if (isRawNumber(value)) return `raw ${value.rawJSON}`;
    if (Array.isArray(value)) {
      const list = key === "managedFields" ? sortManagers(value) : value;
      return list.map((item) => this.value(item));
    }
    if (!isJsonObject(value)) return value;
    if (key === "details") return this.#object(withSortedCauses(value));
    if (key === "metadata") return this.#object(value);
    if (isList(value)) return this.#aboutStore(value);
    if (value["type"] === "BOOKMARK" && isJsonObject(value["object"])) {
      return { type: "BOOKMARK", object: this.#aboutStore(value["object"]) };
    }
    return this.#object(isStatusOfMany(value) ? withoutReasons(value) : value);
  }

  #object(value: JsonObject): JsonObject {
    const result: JsonObject = {};
    // In order of keys, because symbols are numbered by first appearance.
    for (const name of Object.keys(value).toSorted())
      result[name] = this.value(value[name] ?? null, name);
    return result;
  }

  /** Items first: the version of the store is compared with theirs. */
  #aboutStore({ metadata, ...rest }: JsonObject): JsonObject {
    const result = this.#object(rest);
    if (!isJsonObject(metadata)) return result;
    const { resourceVersion: version, ...others } = metadata;
    const normalised = this.#object(others);
    if (typeof version === "string") normalised["resourceVersion"] = this.#store(version);
    return { ...result, metadata: normalised };
  }

  #text(text: string, key: string): string {
    if (key === "resourceVersion") return this.#version(text);
    if (key === "continue") return text === "" ? "" : "<token>";
    return text
      .replaceAll(UUID, (uid) => symbol(this.#uids, uid, "uid"))
      .replaceAll(TIME, "<time>")
      .replaceAll(TOO_OLD, "too old resource version: <version> (<version>)")
      .replaceAll(CURRENT_VERSION, "current: <version>")
      .replaceAll(
        VERSION_IN_TEXT,
        (_, before: string, version: string) => `${before}${this.#version(version)}`,
      )
      .replaceAll(GENERATED_NAME, "$1<random>");
  }

  #version(version: string): string {
    if (!isVersion(version)) return version;
    const known = this.#versions.get(version);
    if (known !== undefined) return known;
    const name = symbol(this.#versions, version, "version");
    const newer = this.#oldestAfter(version);
    if (newer === undefined) return name;
    const marked = name.replace(">", `, older than ${newer.replaceAll(/[<>]|, .*/g, "")}>`);
    this.#versions.set(version, marked);
    return marked;
  }

  #store(version: string): string {
    if (!isVersion(version)) return version;
    const newer = this.#oldestAfter(version);
    return newer === undefined ? "<store>" : `<store before ${newer}>`;
  }

  /** The symbol of the oldest earlier version that is newer than this one. */
  #oldestAfter(version: string): string | undefined {
    const newer = [...this.#versions.keys()].filter((seen) => BigInt(seen) > BigInt(version));
    const oldest = newer.toSorted((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))[0];
    return oldest === undefined ? undefined : this.#versions.get(oldest);
  }
}

/** Empty and "0" mean no version; any other non-number is an error to show. */
const isVersion = (text: string): boolean => /^[1-9]\d*$/.test(text);

const isList = (value: JsonObject): boolean =>
  Array.isArray(value["items"]) && String(value["kind"]).endsWith("List");

/** Go iterates over an object's members in random order, so the order of causes is random too. */
function withSortedCauses(details: JsonObject): JsonObject {
  const { causes } = details;
  if (!Array.isArray(causes)) return details;
  const text = (cause: JsonValue) => JSON.stringify(cause);
  return { ...details, causes: causes.toSorted((a, b) => (text(a) < text(b) ? -1 : 1)) };
}

const isStatusOfMany = (value: JsonObject): boolean => {
  const { details } = value;
  const causes = isJsonObject(details) ? details["causes"] : undefined;
  return value["kind"] === "Status" && Array.isArray(causes) && causes.length > 1;
};

/** The message repeats the causes in the same random order. */
function withoutReasons(status: JsonObject): JsonObject {
  const message = typeof status["message"] === "string" ? status["message"] : "";
  return { ...status, message: message.replace(/ is invalid: .*$/s, " is invalid: <causes>") };
}

function symbol(known: Map<string, string>, value: string, name: string): string {
  const found = known.get(value) ?? `<${name} ${known.size + 1}>`;
  known.set(value, found);
  return found;
}

/** Sorts the entries of managedFields, whose order depends on the second of the write. */
export function sortManagers(entries: readonly JsonValue[]): JsonValue[] {
  const identity = (entry: JsonValue) =>
    isJsonObject(entry)
      ? ["operation", "manager", "subresource", "apiVersion"]
          .map((name) => entry[name] ?? "")
          .join(" ")
      : "";
  return entries.toSorted((a, b) => (identity(a) < identity(b) ? -1 : 1));
}
