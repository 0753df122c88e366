import {
  defined,
  jsonEquals,
  KonvergeError,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { FieldOwnership } from "./field-ownership.ts";
import {
  finalizersOf,
  isTerminatingView,
  metadataOf,
  textOf,
  withMetadata,
  withoutMetadata,
} from "./object-fields.ts";
import type { ObjectPlace, Place } from "./planned-call.ts";

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

/** An object that the plan has written. */
export interface PlannedObject {
  readonly place: ObjectPlace;
  /** As on the server; undefined if it does not exist there. */
  readonly before: JsonObject | undefined;
  /** As after the planned writes; undefined if they delete it. */
  view: JsonObject | undefined;
  /** The name under which the server checks an object that replaces a planned deletion. */
  standIn: string | undefined;
  /** True once its status was written through the subresource. */
  statusWritten: boolean;
  /** The only writer of the object so far, if all writes are its applies. */
  applier: string | undefined;
  ownership: FieldOwnership;
  readonly writes: PlannedWrite[];
  /** Number of writes that are not in `writes`. */
  omitted: number;
}

/** Something that the plan depends on and cannot determine. */
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
  /** Undefined for an object that does not exist. Of a list, the names and versions of its objects. */
  readonly version: string | undefined;
}

/** A plan of more objects would take the memory of the worker. */
const MOST_OBJECTS = 10_000;
const MOST_WRITES = 20;
const MOST_GAPS = 50;
const MOST_READS = 2_000;
/** Longer than every version of etcd, so planned versions are newer. */
const FIRST_VERSION = 9_000_000_000_000_000_000_000n;

/** The objects that a plan has read and written in one cluster. */
export class PlannedObjects {
  readonly #written = new Map<string, PlannedObject>();
  readonly #seen = new Map<string, JsonObject>();
  readonly #reads = new Map<string, PlanRead>();
  readonly #gaps = new Map<string, PlanGap>();
  #versions = 0n;
  #placeholders = 0;
  #omittedReads = 0;
  #omittedGaps = 0;

  get written(): readonly PlannedObject[] {
    return [...this.#written.values()];
  }

  get reads(): readonly PlanRead[] {
    return [...this.#reads.values()];
  }

  get gaps(): readonly PlanGap[] {
    return [...this.#gaps.values()];
  }

  get omitted(): { readonly reads: number; readonly gaps: number } {
    return { reads: this.#omittedReads, gaps: this.#omittedGaps };
  }

  find(place: Place): PlannedObject | undefined {
    return this.#written.get(idOf(place));
  }

  ofKind({ group, resource, namespace }: Place): readonly PlannedObject[] {
    return this.written.filter(
      ({ place }) =>
        place.group === group &&
        place.resource === resource &&
        (namespace === undefined || place.namespace === namespace),
    );
  }

  /** The object as read last from the server. */
  seen(place: Place): JsonObject | undefined {
    return this.#seen.get(idOf(place));
  }

  noteSeen(place: Place, object: JsonObject): void {
    if (this.#seen.size < MOST_OBJECTS) this.#seen.set(idOf(place), object);
  }

  /** The first version counts: what the handler has decided by. */
  noteRead(place: Place, version: string | undefined, query?: string): void {
    const { group, resource, namespace, name } = place;
    const id = `${idOf(place)}?${query ?? ""}`;
    const known = this.#reads.get(id);
    if (known !== undefined) {
      if (known.version !== version) this.noteGap(labelFor(place), "changed while it was planned");
      return;
    }
    if (this.#reads.size >= MOST_READS) {
      this.#omittedReads += 1;
      return;
    }
    this.#reads.set(id, { group, resource, version, ...defined({ namespace, name, query }) });
  }

  noteGap(about: string, reason: string): void {
    const id = `${about}\n${reason}`;
    if (this.#gaps.has(id)) return;
    if (this.#gaps.size >= MOST_GAPS) this.#omittedGaps += 1;
    else this.#gaps.set(id, { about, reason });
  }

  /** @throws KonvergeError `not_plannable` for too many objects */
  add(place: ObjectPlace, before: JsonObject | undefined): PlannedObject {
    if (this.#written.size >= MOST_OBJECTS) {
      throw new KonvergeError(
        "not_plannable",
        `the plan writes more than ${MOST_OBJECTS} objects; plan a smaller change`,
      );
    }
    const { subresource: _part, ...whole } = place;
    const added: PlannedObject = {
      place: whole,
      before,
      view: before,
      standIn: undefined,
      statusWritten: false,
      applier: undefined,
      ownership: new FieldOwnership(before),
      writes: [],
      omitted: 0,
    };
    this.#written.set(idOf(place), added);
    return added;
  }

  /** Stores the result of a write. Returns the object as the caller receives it. */
  settle(
    object: PlannedObject,
    next: JsonObject,
    { intent, ...write }: Omit<PlannedWrite, "changed"> & { readonly intent?: JsonObject },
  ): JsonObject {
    const previous = object.view;
    if (previous === undefined) object.ownership = new FieldOwnership(undefined);
    const before = previous ?? {};
    const id = managerOf(write);
    if (intent === undefined) object.ownership.update(id, before, next);
    else object.ownership.apply(id, intent, { before, after: next });
    const changed = previous === undefined || !isSame(previous, next);
    const settled = changed ? this.#renew(previous, next) : previous;
    const isGone = isTerminatingView(settled) && finalizersOf(settled).length === 0;
    object.view = isGone && graceOf(settled) === 0 ? undefined : settled;
    this.#noteWrite(object, { ...write, changed });
    return settled;
  }

  remove(object: PlannedObject, write: Omit<PlannedWrite, "changed">): void {
    object.view = undefined;
    this.#noteWrite(object, { ...write, changed: true });
  }

  /** A uid for an object that does not exist yet; the same for each plan of the same writes. */
  nextUid(): string {
    this.#placeholders += 1;
    return `00000000-0000-4000-8000-${String(this.#placeholders).padStart(12, "0")}`;
  }

  /** A name for `generateName`. */
  nextName(prefix: string): string {
    this.#placeholders += 1;
    // As the server does: the name fits into 63 characters.
    return `${prefix.slice(0, 58)}p${String(this.#placeholders).padStart(4, "0")}`;
  }

  #renew(previous: JsonObject | undefined, next: JsonObject): JsonObject {
    this.#versions += 1n;
    const resourceVersion = String(FIRST_VERSION + this.#versions);
    return withMetadata(inGeneration(previous, next), { resourceVersion });
  }

  #noteWrite(object: PlannedObject, write: PlannedWrite): void {
    if (object.writes.length < MOST_WRITES) object.writes.push(write);
    else object.omitted += 1;
  }
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

function idOf({ group, resource, namespace = "", name = "" }: Place): string {
  return `${resource}.${group}/${namespace}/${name}`;
}

const labelFor = ({ resource, namespace, name }: Place): string =>
  [resource, namespace, name].filter((part) => part !== undefined).join(" ");

const SERVER_FIELDS = ["resourceVersion", "generation", "managedFields"];

/** True if the server stores nothing: the times of managed fields do not count. */
function isSame(one: JsonObject, other: JsonObject): boolean {
  return (
    jsonEquals(withoutMetadata(one, SERVER_FIELDS), withoutMetadata(other, SERVER_FIELDS)) &&
    jsonEquals(managersOf(one), managersOf(other))
  );
}

function managersOf(object: JsonObject): JsonValue[] {
  const { managedFields } = metadataOf(object) as { readonly managedFields?: JsonObject[] };
  return (managedFields ?? []).map(({ time: _time, ...entry }) => entry);
}

function graceOf(object: JsonObject): number {
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
