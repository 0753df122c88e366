import { SERVER_METADATA, type ErrorIssue, type JsonObject } from "@konverge/core";
import type { Change, Changes, Preconditions } from "./change.ts";
import type { OpenKind } from "./open-kind.ts";
import { formatPointer, isWithin, parsePointer } from "./pointer.ts";
import { leavesOf, touchedPaths, type TouchedPath } from "./touched-paths.ts";

/** Annotations with this prefix mark the batches that have been written. */
export const MARK_PREFIX = "konverge.dev/mutations-";

/** Annotations of Konverge that prove that a write was made: of mutations, and of steps of workflows. */
const MARK_PREFIXES = [MARK_PREFIX, "konverge.dev/step-"];

/** Fields that identify an object or belong to the API server. */
const FIXED: readonly (readonly string[])[] = [
  ["apiVersion"],
  ["kind"],
  ...["name", "generateName", "namespace", ...SERVER_METADATA].map((field) => ["metadata", field]),
];

/** The parts of a mutation that can be restricted. */
interface Restricted {
  readonly changes: Changes;
  readonly subresource?: "status" | "scale";
  readonly preconditions?: Preconditions;
  readonly createIfMissing?: JsonObject | true;
}

/**
 * Returns what a mutation must not do: change fields outside of those that the configuration or the token opens, change the
 * identity of the object, or make a change that could not be repeated on a subresource.
 * @param limits lists of open paths; all of them must allow a field
 */
export function findRestrictions(
  kind: OpenKind,
  { changes, subresource, preconditions, createIfMissing }: Restricted,
  limits: readonly (readonly string[] | undefined)[] = [],
): readonly ErrorIssue[] {
  const allowed = [kind.paths, ...limits].flatMap((paths) =>
    paths === undefined ? [] : [paths.map((path) => parsePointer(path) ?? [])],
  );
  const issues: ErrorIssue[] = [];
  const check = (touched: Omit<TouchedPath, "pointer">, pointer: string): void => {
    const fixed = touched.isTest === true ? testIssue(kind, touched.path) : fixedIssue(touched);
    const detail = fixed ?? outsideIssue(kind, touched.path, allowed);
    if (detail !== undefined) issues.push({ pointer, detail });
  };
  for (const [at, change] of changes.entries()) {
    for (const { pointer, ...touched } of touchedPaths(change)) {
      check(touched, `/changes/${at}${pointer}`);
      const detail = subresourceIssue(change, touched.path, subresource);
      if (detail !== undefined) issues.push({ pointer: `/changes/${at}${pointer}`, detail });
    }
    const detail = repeatIssue(kind, change, subresource);
    if (detail !== undefined) issues.push({ pointer: `/changes/${at}`, detail });
  }
  if (createIfMissing !== undefined && createIfMissing !== true) {
    for (const leaf of leavesOf(createIfMissing)) check(leaf, "/create");
  }
  if (kind.sensitive === true) {
    for (const [at, { path }] of (preconditions?.fields ?? []).entries()) {
      const segments = parsePointer(path) ?? [];
      if (segments[0] === "metadata") continue;
      issues.push({
        pointer: `/if/fields/${at}/path`,
        detail: `must be below /metadata, because ${kind.kind} is sensitive (got ${path})`,
      });
    }
  }
  return issues;
}

/** The outcome of a test would tell whether a guessed value is right. */
function testIssue(kind: OpenKind, path: readonly string[]): string | undefined {
  if (kind.sensitive !== true || path[0] === "metadata") return undefined;
  return `a test must be below /metadata, because ${kind.kind} is sensitive (got ${formatPointer(path)})`;
}

function fixedIssue({ path, isKept }: Omit<TouchedPath, "pointer">): string | undefined {
  const text = formatPointer(path);
  // A change of a parent would replace the field as well.
  const fixed = FIXED.find((field) => isWithin(field, path) || isWithin(path, field));
  if (fixed !== undefined) {
    const field = formatPointer(fixed);
    return `${text} cannot be changed, because ${field} identifies the object or is set by the API server`;
  }
  const [first, second, third] = path;
  if (first !== "metadata" || second !== "annotations") return undefined;
  if (third === undefined) {
    return isKept === true
      ? undefined
      : `${text} cannot be replaced, because Konverge marks its writes with annotations; change single annotations`;
  }
  return MARK_PREFIXES.some((prefix) => third.startsWith(prefix))
    ? `${text} cannot be changed, because Konverge marks its writes with it`
    : undefined;
}

function outsideIssue(
  { kind }: OpenKind,
  path: readonly string[],
  allowed: readonly (readonly (readonly string[])[])[],
): string | undefined {
  const closed = allowed.find((paths) => !paths.some((open) => isWithin(open, path)));
  if (closed === undefined) return undefined;
  const known = closed.map(formatPointer).join(", ") || "none";
  return `${formatPointer(path)} of ${kind} is not open for mutations; open: ${known}`;
}

function subresourceIssue(
  { kind }: Change,
  path: readonly string[],
  subresource: "status" | "scale" | undefined,
): string | undefined {
  const text = formatPointer(path);
  if (subresource === "scale") {
    const isReplicas = text === "/spec/replicas" && (kind === "set" || kind === "merge");
    return isReplicas ? undefined : "scale accepts only set and merge of /spec/replicas";
  }
  const isStatus = path[0] === "status";
  if (subresource === "status" && !isStatus) {
    return `${text} is not part of the status; omit subresource, or use a path below /status`;
  }
  return subresource === undefined && isStatus
    ? `${text} is part of the status; add subresource "status"`
    : undefined;
}

/** A write of a subresource carries no mark, so a change whose repetition differs could be made twice. */
function repeatIssue(
  { kind }: OpenKind,
  change: Change,
  subresource: "status" | "scale" | undefined,
): string | undefined {
  if (change.kind === "increment" && kind === "Secret" && change.path.startsWith("/data/")) {
    return "increment does not work in /data of a Secret, because its values are base64; use set";
  }
  if (subresource === undefined) return undefined;
  const isPosition = /\/(-|\d+)$/;
  const isOnce =
    change.kind === "increment" ||
    change.kind === "append" ||
    change.kind === "jsonPatch" ||
    (change.kind === "set" && change.path.endsWith("/-")) ||
    (change.kind === "remove" && change.value === undefined && isPosition.test(change.path));
  if (!isOnce) return undefined;
  return `${change.kind} is not possible on subresource "${subresource}", because it could be made twice; use set or merge`;
}
