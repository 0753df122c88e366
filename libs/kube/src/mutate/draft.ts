import {
  cloneJson,
  diffMergePatch,
  getOwn,
  isJsonObject,
  isRawNumber,
  jsonEquals,
  KonvergeError,
  type ErrorIssue,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { escapePointer } from "../names/json-pointer.ts";

/** An object as it was read, and the copy of it that a change function may edit. */
export interface Draft {
  readonly before: JsonObject;
  readonly draft: JsonObject;
}

/** Copies the object that was read. With subresource `status`, the draft always has a status. */
export function makeDraft(read: JsonObject, subresource: string | undefined): Draft {
  // Absent and empty are equivalent, so that a status which stays empty is not a change.
  const before =
    subresource === "status" && !isJsonObject(read["status"]) ? { ...read, status: {} } : read;
  return { before, draft: cloneJson(before) };
}

/**
 * Fields owned by the server or given by the address of the call. A draft that differs there would be written elsewhere
 * or rejected.
 */
const IDENTITY = ["name", "namespace", "uid", "resourceVersion", "managedFields"];
const MAX_ISSUES = 20;

/**
 * Returns the merge patch of the draft's changes, or undefined without changes.
 * @throws KonvergeError `invalid_draft` with a pointer for each field that cannot be written
 */
export function patchOf(
  { before, draft }: Draft,
  subresource: string | undefined,
): JsonObject | undefined {
  const issues: ErrorIssue[] = [];
  checkIdentity(before, draft, issues);
  if (subresource === "status") checkOnlyStatus(before, draft, issues);
  checkValue(draft, before, "", { issues, within: new Set() });
  if (issues.length > 0) {
    const shown = issues.slice(0, MAX_ISSUES);
    throw new KonvergeError(
      "invalid_draft",
      `the draft cannot be written: ${shown.map(({ pointer, detail }) => `${pointer} ${detail}`).join("; ")}`,
      { issues: shown },
    );
  }
  shareManagedFields(before, draft);
  return diffMergePatch(before, draft);
}

/**
 * Avoids a second comparison of managedFields: they are already known to be equal, and often the largest part of an
 * object.
 */
function shareManagedFields(before: JsonObject, draft: JsonObject): void {
  const known = objectOf(before["metadata"])["managedFields"];
  const metadata = draft["metadata"];
  if (known !== undefined && isJsonObject(metadata)) metadata["managedFields"] = known;
}

function checkIdentity(before: JsonObject, draft: JsonObject, issues: ErrorIssue[]): void {
  const was = objectOf(before["metadata"]);
  const is = objectOf(draft["metadata"]);
  for (const field of IDENTITY) {
    if (!jsonEquals(was[field], is[field])) {
      issues.push({
        pointer: `/metadata/${field}`,
        detail: "is read-only; keep the value that was read",
      });
    }
  }
  for (const field of ["apiVersion", "kind"]) {
    if (draft[field] !== before[field]) {
      issues.push({ pointer: `/${field}`, detail: "is read-only; keep the value that was read" });
    }
  }
}

/** Servers respond with 200 and drop other fields than status; this check makes that silent loss an error. */
function checkOnlyStatus(before: JsonObject, draft: JsonObject, issues: ErrorIssue[]): void {
  for (const field of new Set([...Object.keys(before), ...Object.keys(draft)])) {
    if (field === "status" || jsonEquals(getOwn(before, field), getOwn(draft, field))) continue;
    if (field === "apiVersion" || field === "kind") continue;
    issues.push({
      pointer: `/${field}`,
      detail:
        "was changed, but the status subresource writes only status; use mutate without a subresource",
    });
  }
}

interface Checking {
  readonly issues: ErrorIssue[];
  /** The objects and lists that contain the value. */
  readonly within: Set<object>;
}

/** `known` is the value as read: unchanged values are not checked. */
function checkValue(
  value: unknown,
  known: JsonValue | undefined,
  pointer: string,
  checking: Checking,
): void {
  const { issues, within } = checking;
  if (
    issues.length >= MAX_ISSUES ||
    value === undefined ||
    value === null ||
    Object.is(value, known)
  )
    return;
  if (typeof value === "string" || typeof value === "boolean" || isRawNumber(value)) return;
  if (typeof value === "number") {
    if (!Number.isFinite(value))
      issues.push({
        pointer,
        detail: `is ${value}, which is not valid in JSON; use a finite number`,
      });
  } else if (typeof value !== "object" || !(Array.isArray(value) || isPlain(value))) {
    issues.push({ pointer, detail: fixFor(value) });
  } else if (within.has(value)) {
    issues.push({ pointer, detail: "is a circular reference; assign a copy" });
  } else {
    within.add(value);
    if (Array.isArray(value)) checkList(value, known, pointer, checking);
    else checkMembers(value, known, pointer, checking);
    within.delete(value);
  }
}

function checkMembers(
  value: object,
  known: JsonValue | undefined,
  pointer: string,
  checking: Checking,
): void {
  const wasObject = isJsonObject(known) ? known : {};
  for (const key of Object.keys(value)) {
    const member: unknown = value[key as keyof typeof value];
    const was = getOwn(wasObject, key);
    if (member !== was) checkValue(member, was, `${pointer}/${escapePointer(key)}`, checking);
  }
}

/** A changed list is written as a whole, so each element counts. */
function checkList(
  value: readonly unknown[],
  known: JsonValue | undefined,
  pointer: string,
  checking: Checking,
): void {
  if (Array.isArray(known) && jsonEquals(known, value)) return;
  for (const [index, entry] of value.entries()) {
    const at = `${pointer}/${index}`;
    // JSON would write null for undefined in a list.
    if (entry === undefined)
      checking.issues.push({
        pointer: at,
        detail: "is undefined; remove the element from its list",
      });
    else checkValue(entry, undefined, at, checking);
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === null ||
    prototype === Object.prototype ||
    Object.getPrototypeOf(prototype) === null
  );
}

function fixFor(value: unknown): string {
  if (typeof value === "bigint") return "is a bigint; write JSON.rawJSON(String(value))";
  if (value instanceof Date) return "is a Date; write value.toISOString()";
  return `is a ${typeof value === "object" ? "class instance" : typeof value}, which is not valid in JSON; use plain data`;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
