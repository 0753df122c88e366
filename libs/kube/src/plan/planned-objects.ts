import { createHash } from "node:crypto";
import { defined, KonvergeError, type JsonObject, type JsonValue } from "@konverge/core";
import { drawnValues } from "./drawn-values.ts";
import { FieldOwnership } from "./field-ownership.ts";
import { finalizersOf, isTerminatingView, textOf, withMetadata } from "./object-fields.ts";
import { labelOf, type ObjectPlace, type Place } from "./planned-call.ts";
import {
  graceOf,
  inGeneration,
  isSame,
  managerOf,
  type PlanGap,
  type PlannedObject,
  type PlannedWrite,
  type SettledWrite,
} from "./planned-object.ts";
import { PlannedReads } from "./planned-reads.ts";

/** A plan of more objects would need too much memory of the worker. */
const MOST_OBJECTS = 10_000;
/** Most characters of JSON of the objects that are kept to compare with; the oldest are read again. */
const MOST_SEEN = 64_000_000;
const MOST_GAPS = 50;
/** Longer than every version of etcd, so planned versions are newer. */
const FIRST_VERSION = 9_000_000_000_000_000_000_000n;

/** The objects that a plan has read and written in one cluster. */
export class PlannedObjects {
  readonly #written = new Map<string, PlannedObject>();
  readonly #seen = new Map<string, { readonly object: JsonObject; readonly size: number }>();
  readonly #sensitive = new Set<string>();
  readonly #placeholders = new Map<string, number>();
  readonly reads: PlannedReads = new PlannedReads();
  readonly #gaps = new Map<string, PlanGap>();
  #seenSize = 0;
  #isRefused = false;
  #versions = 0n;
  #omittedGaps = 0;
  #isChanged = false;
  readonly #drawn = new Set<JsonValue>();

  get written(): readonly PlannedObject[] {
    return [...this.#written.values()];
  }

  get gaps(): readonly PlanGap[] {
    return [...this.#gaps.values()];
  }

  /** True if an object or a list has changed while it was planned. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** All values that the server has drawn for the planned writes. */
  get drawn(): ReadonlySet<JsonValue> {
    return this.#drawn;
  }

  /** The version of an object before the plan; null if it did not exist, undefined if the plan has not read it. */
  versionOf(place: Place): string | null | undefined {
    const { subresource: _part, ...whole } = place;
    const read = this.reads.find(`${idOf(whole)}?`);
    if (read !== undefined) return read.version ?? null;
    const object = this.find(whole)?.before ?? this.seen(whole);
    return object === undefined ? undefined : textOf(object, "resourceVersion");
  }

  get omitted(): { readonly reads: number; readonly gaps: number } {
    return { reads: this.reads.omitted + this.reads.digests.length, gaps: this.#omittedGaps };
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
    return this.#seen.get(idOf(place))?.object;
  }

  /** Keeps an object of about this size in characters of JSON. */
  noteSeen(place: Place, object: JsonObject, size: number): void {
    const id = idOf(place);
    this.#forget(id);
    this.#seen.set(id, { object, size });
    this.#seenSize += size;
    for (const oldest of this.#seen.keys()) {
      if (this.#seenSize <= MOST_SEEN) return;
      this.#forget(oldest);
    }
  }

  #forget(id: string): void {
    this.#seenSize -= this.#seen.get(id)?.size ?? 0;
    this.#seen.delete(id);
  }

  /** Marks a kind, for example because the type of a call is sensitive. */
  noteSensitive({ group, resource }: Pick<Place, "group" | "resource">): void {
    this.#sensitive.add(`${resource}.${group}`);
  }

  isSensitive({ group, resource }: Pick<Place, "group" | "resource">): boolean {
    return this.#sensitive.has(`${resource}.${group}`);
  }

  /** True if a call was refused that the live attempt would make. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  noteRefusal(about: string, reason: string): void {
    this.#isRefused = true;
    this.noteGap(about, reason);
  }

  noteRead(place: Place, version: string | undefined, query?: string): void {
    const { group, resource, namespace, name } = place;
    const read = { group, resource, version, ...defined({ namespace, name, query }) };
    if (!this.reads.note(`${idOf(place)}?${query ?? ""}`, read)) this.noteChanged(place);
  }

  /** Notes the answer of a read of something other than an object or a list of objects. */
  noteAnswer(path: string, text: string): void {
    const version = createHash("sha256").update(text).digest("base64url");
    const read = { group: "", resource: "", query: path, version };
    if (this.reads.note(path, read)) return;
    this.#isChanged = true;
    this.noteGap(path, "changed while it was planned");
  }

  noteChanged(place: Place): void {
    this.#isChanged = true;
    const about = place.name === undefined ? `list of ${place.resource}` : labelOf(place);
    this.noteGap(about, "changed while it was planned");
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
      drawn: new Set(),
      writes: [],
    };
    this.#written.set(idOf(place), added);
    return added;
  }

  /** Stores the result of a write. Returns the object as the caller receives it. */
  settle(
    object: PlannedObject,
    next: JsonObject,
    { intent, given = "", ...write }: SettledWrite,
  ): JsonObject {
    const previous = object.view;
    if (previous === undefined) object.ownership = new FieldOwnership(undefined);
    const before = previous ?? {};
    const id = managerOf(write);
    // From here on, an apply does not replace all earlier writes.
    if (intent === undefined) object.applier = undefined;
    if (intent === undefined) object.ownership.update(id, before, next);
    else object.ownership.apply(id, intent, { before, after: next });
    const drawn = drawnValues(object.place, { previous, next, given });
    for (const value of drawn) {
      object.drawn.add(value);
      this.#drawn.add(value);
    }
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
  nextUid(place: Place): string {
    const id = idOf(place);
    const digest = createHash("sha256")
      .update(`${id} ${this.#numberOf(id)}`)
      .digest("hex");
    return `00000000-0000-4000-8000-${digest.slice(0, 12)}`;
  }

  /** A name for `generateName`. */
  nextName({ name: _name, ...place }: Place, prefix: string): string {
    // As the server does: the name fits into 63 characters.
    const start = prefix.slice(0, 58);
    const number = this.#numberOf(`${idOf(place)}${start}...`);
    return `${start}p${String(number).padStart(4, "0")}`;
  }

  /** Counts per place: calls that run at the same time arrive in any order. */
  #numberOf(id: string): number {
    const number = (this.#placeholders.get(id) ?? 0) + 1;
    this.#placeholders.set(id, number);
    return number;
  }

  #renew(previous: JsonObject | undefined, next: JsonObject): JsonObject {
    this.#versions += 1n;
    const resourceVersion = String(FIRST_VERSION + this.#versions);
    return withMetadata(inGeneration(previous, next), { resourceVersion });
  }

  #noteWrite(object: PlannedObject, write: PlannedWrite): void {
    object.writes.push(write);
  }
}

function idOf({ group, resource, namespace = "", name = "" }: Place): string {
  return `${resource}.${group}/${namespace}/${name}`;
}
