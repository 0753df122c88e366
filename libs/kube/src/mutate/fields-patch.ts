import {
  applyMergePatch,
  getOwn,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import type { TouchedField } from "./field-tracker.ts";
import { jsonPointer } from "../names/json-pointer.ts";

interface FieldsPatchParts {
  readonly read: JsonObject;
  readonly touched: TouchedField;
  /** The merge patch to write. */
  readonly patch: JsonObject;
}

/**
 * Returns the JSON Patch that writes `patch` if all touched fields still have the values that were read, whatever else
 * has changed. A missing member is tested against null at its topmost missing parent, since a test below it fails (the
 * server's library requires the parent). Reading the metadata as a whole, or the version itself, counts as reading the
 * version. So does reading a list with a null in it: testing one causes a panic in that library, which closes the
 * connection.
 */
export function fieldsPatch({ read, touched, patch }: FieldsPatchParts): JsonObject[] {
  const operations: JsonObject[] = [];
  const metadata = objectOf(read["metadata"]);
  if (metadata["uid"] !== undefined) {
    operations.push({ op: "test", path: "/metadata/uid", value: metadata["uid"] });
  }
  const tests = testsOf(read, touched);
  const needsVersion = isVersionRead(touched) || tests.some(({ value }) => hasNullItem(value));
  if (needsVersion && metadata["resourceVersion"] !== undefined) {
    // A failed test has no specific response; replacing the version with a stale one is a conflict.
    operations.push({
      op: "replace",
      path: "/metadata/resourceVersion",
      value: metadata["resourceVersion"],
    });
  } else {
    operations.push(...tests);
  }
  addWrites(operations, { patch, before: read, path: [] });
  return operations;
}

/** Tested by other means, or constant for one uid. */
const NOT_TESTED = new Set([
  "/apiVersion",
  "/kind",
  "/metadata",
  "/metadata/name",
  "/metadata/namespace",
  "/metadata/uid",
  "/metadata/creationTimestamp",
]);
/** Fields that change with every write. */
const VERSIONS = ["resourceVersion", "managedFields"];

function isVersionRead({ whole, members }: TouchedField): boolean {
  const metadata = members.get("metadata");
  return (
    whole ||
    metadata?.whole === true ||
    VERSIONS.some((name) => metadata?.members.has(name) === true)
  );
}

function hasNullItem(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.some((item) => item === null || hasNullItem(item));
  return isJsonObject(value) && Object.values(value).some(hasNullItem);
}

function testsOf(read: JsonObject, touched: TouchedField): JsonObject[] {
  const tests: JsonObject[] = [];
  addTests(tests, { value: read, touched, path: [] });
  return tests;
}

interface TestsAt {
  readonly value: JsonValue | undefined;
  readonly touched: TouchedField;
  readonly path: readonly string[];
}

function addTests(operations: JsonObject[], { value, touched, path }: TestsAt): void {
  const pointer = jsonPointer(path);
  if (isJsonObject(value) && !touched.whole) {
    for (const [key, member] of touched.members) {
      addTests(operations, { value: getOwn(value, key), touched: member, path: [...path, key] });
    }
    // An absent member proves that the object exists: the test fails without the object.
    if (touched.members.size === 0 && !NOT_TESTED.has(pointer) && pointer !== "") {
      operations.push({ op: "test", path: `${pointer}/${absentKey(value)}`, value: null });
    }
  } else if (!NOT_TESTED.has(pointer)) {
    operations.push({ op: "test", path: pointer, value: value ?? null });
  }
}

function absentKey(object: JsonObject): string {
  let key = "-";
  while (Object.hasOwn(object, key)) key += "-";
  return key;
}

interface WritesAt {
  readonly patch: JsonObject;
  readonly before: JsonObject;
  readonly path: readonly string[];
}

function addWrites(operations: JsonObject[], { patch, before, path }: WritesAt): void {
  for (const [key, next] of Object.entries(patch)) {
    const previous = getOwn(before, key);
    const at = [...path, key];
    if (isJsonObject(next) && isJsonObject(previous)) {
      addWrites(operations, { patch: next, before: previous, path: at });
    } else if (next === null) {
      operations.push({ op: "remove", path: jsonPointer(at) });
    } else {
      const op = previous === undefined ? "add" : "replace";
      // As in a merge patch, a null in an object means absence.
      operations.push({ op, path: jsonPointer(at), value: applyMergePatch(undefined, next) });
    }
  }
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
