import { defined, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { textOf } from "../objects/metadata.ts";
import { fromFieldsV1, isEmptySet, toFieldsV1, type FieldSet } from "./field-set.ts";

/** One entry of `metadata.managedFields`. */
export interface Managed {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  /** RFC 3339; absent if a client wrote the entry without one. */
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** Indexes entries by identity: manager, operation and subresource, and for updates the API version. */
export type ManagedFields = Map<string, Managed>;

type Identity = Pick<Managed, "manager" | "operation" | "apiVersion" | "subresource">;

export const identityOf = ({ manager, operation, apiVersion, subresource }: Identity): string =>
  JSON.stringify([manager, operation, operation === "Apply" ? "" : apiVersion, subresource]);

/** Parses the list; returns undefined if an entry is invalid, because clients can write it. */
export function readManagedFields(list: JsonValue | undefined): ManagedFields | undefined {
  const managed: ManagedFields = new Map();
  for (const entry of Array.isArray(list) ? list : []) {
    if (!isJsonObject(entry)) return undefined;
    const operation = entry["operation"];
    if (operation !== "Apply" && operation !== "Update") return undefined;
    const apiVersion = textOf(entry, "apiVersion");
    if (apiVersion === "" || entry["fieldsType"] !== "FieldsV1") return undefined;
    const fieldsV1 = entry["fieldsV1"];
    const one: Managed = {
      manager: textOf(entry, "manager"),
      operation,
      apiVersion,
      subresource: textOf(entry, "subresource"),
      time: textOf(entry, "time") || undefined,
      fields: fromFieldsV1(isJsonObject(fieldsV1) ? fieldsV1 : {}),
    };
    managed.set(identityOf(one), one);
  }
  return managed;
}

/** Returns true if a client resets all owners: an empty list, or one empty entry. */
export function isReset(list: JsonValue | undefined): boolean {
  if (!Array.isArray(list)) return false;
  const [first] = list;
  if (first === undefined) return true;
  return list.length === 1 && isJsonObject(first) && Object.keys(first).length === 0;
}

/** Formats the list in the real server's order: operation, second, manager, version, subresource. */
export function writeManagedFields(managed: ManagedFields): JsonObject[] {
  const order = (one: Managed) => [
    one.operation,
    one.time ?? "",
    one.manager,
    one.apiVersion,
    one.subresource,
  ];
  return [...managed.values()]
    .filter(({ fields }) => !isEmptySet(fields))
    .toSorted((a, b) => compareLists(order(a), order(b)))
    .map(({ manager, operation, apiVersion, subresource, time, fields }) => ({
      ...(manager === "" ? {} : { manager }),
      operation,
      apiVersion,
      ...defined({ time }),
      fieldsType: "FieldsV1",
      fieldsV1: toFieldsV1(fields),
      ...(subresource === "" ? {} : { subresource }),
    }));
}

function compareLists(left: readonly string[], right: readonly string[]): number {
  for (const [index, value] of left.entries()) {
    const other = right[index] ?? "";
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
