import { jsonEquals, metadataOf, type JsonObject, type JsonValue } from "@konverge/core";
import type { FieldOwnership } from "./field-ownership.ts";
import { textOf, withMetadata, withoutMetadata } from "./object-fields.ts";
import type { ObjectPlace } from "./planned-call.ts";

/** One write of a plan. */
export interface PlannedWrite {
  readonly verb: "create" | "update" | "patch" | "apply" | "delete";
  readonly subresource?: string;
  readonly fieldManager?: string;
  /** Of a deletion. */
  readonly propagationPolicy?: string;
  /** False if the server had nothing to store. */
  readonly changed: boolean;
}

/** A write whose result is stored. */
export interface SettledWrite extends Omit<PlannedWrite, "changed"> {
  /** Of an apply. */
  readonly intent?: JsonObject;
  /** The body. */
  readonly given?: string;
}

/** An object that the plan has written. */
export interface PlannedObject {
  readonly place: ObjectPlace;
  /** As on the server; undefined if it does not exist there. */
  before: JsonObject | undefined;
  /** As after the planned writes; undefined if they delete it. */
  view: JsonObject | undefined;
  /** The name under which the server checks an object that replaces a planned deletion. */
  standIn: string | undefined;
  /** True once its status was written through the subresource. */
  statusWritten: boolean;
  /** The only writer of the object so far, if all writes are its applies. */
  applier: string | undefined;
  ownership: FieldOwnership;
  /** Values that the server has drawn, and draws again for each dry run. */
  readonly drawn: Set<JsonValue>;
  readonly writes: PlannedWrite[];
}

/** A fact that the plan depends on and cannot determine. */
export interface PlanGap {
  /** The object or call. */
  readonly about: string;
  readonly reason: string;
}

/** A version that the plan has read. */
export interface PlanRead {
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  /** Missing for a list. */
  readonly name?: string;
  /** The selectors of a list. */
  readonly query?: string;
  /** Undefined for an object that does not exist. For a list, the names and versions of its objects. */
  readonly version: string | undefined;
}

/** True for an object that does not exist on the server, or replaces one. */
export function isNew({ before, standIn }: PlannedObject): boolean {
  return before === undefined || standIn !== undefined;
}

/** Identifies the manager of a write as managed fields do. */
export function managerOf({
  verb,
  subresource = "",
  fieldManager = "",
}: Omit<PlannedWrite, "changed">): string {
  return `${fieldManager} ${verb === "apply" ? "Apply" : "Update"} ${subresource}`;
}

const SERVER_FIELDS = ["resourceVersion", "generation", "managedFields"];

/** True if the server stores nothing: the times of managed fields do not count. */
export function isSame(one: JsonObject, other: JsonObject): boolean {
  return (
    jsonEquals(withoutMetadata(one, SERVER_FIELDS), withoutMetadata(other, SERVER_FIELDS)) &&
    jsonEquals(managersOf(one), managersOf(other))
  );
}

function managersOf(object: JsonObject): JsonValue[] {
  const { managedFields } = metadataOf(object) as { readonly managedFields?: JsonObject[] };
  return (managedFields ?? []).map(({ time: _time, ...entry }) => entry);
}

export function graceOf(object: JsonObject): number {
  return Number(metadataOf(object)["deletionGracePeriodSeconds"] ?? 0);
}

/** A change of anything but the metadata and the status is a new generation. */
export function inGeneration(previous: JsonObject | undefined, next: JsonObject): JsonObject {
  const { generation } = metadataOf(previous ?? {});
  if (previous === undefined || typeof generation !== "number") return next;
  const { metadata: _m, status: _s, ...content } = next;
  const { metadata: _before, status: _old, ...old } = previous;
  const isMarked = textOf(previous, "deletionTimestamp") !== textOf(next, "deletionTimestamp");
  const isSameContent = jsonEquals(content, old) && !isMarked;
  return withMetadata(next, { generation: isSameContent ? generation : generation + 1 });
}
