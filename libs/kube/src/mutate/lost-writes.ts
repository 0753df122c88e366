import {
  defined,
  isJsonObject,
  jsonEquals,
  metadataOf,
  resourceId,
  type JsonObject,
} from "@konverge/core";
import type { CompetingWriter, ConflictRecord } from "../contract/call-record.ts";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import { findCompetingWriters } from "./competing-writers.ts";
import { conflictRecord } from "./conflict-record.ts";

/** Limits the memory of code that reads or loses writes of many objects. */
const MAX_KEPT = 100;

type Target = ErrorRef & { readonly subresource?: string };

/** Writes of other client libraries that lost an optimistic race. The next read of the object reveals the winners. */
export interface LostWrites {
  /** Returns the record of a conflict, which a later read completes; undefined for a write without a name. */
  noteConflict(
    target: Target,
    written: JsonObject,
    readVersion: string,
  ): ConflictRecord | undefined;
  /** Notes an object that was read, or that a write has returned. */
  noteObject(target: Target, object: JsonObject): void;
}

interface LostWrite {
  readonly before: JsonObject;
  /** True if `before` contains the changes of the lost write itself. */
  readonly isOwn: boolean;
  readonly record: ConflictRecord & {
    foundVersion?: string;
    readonly competingWriters: CompetingWriter[];
  };
}

export function createLostWrites(isSensitive: (target: Target) => boolean): LostWrites {
  const lost = new Map<string, LostWrite>();
  const objects = new Map<string, JsonObject>();
  return {
    noteConflict(target, written, readVersion) {
      const { subresource, name, ...type } = target;
      if (name === undefined) return undefined;
      const key = keyOf(target);
      const competingWriters: CompetingWriter[] = [];
      const ref = { ...type, name };
      const record = {
        ...conflictRecord({ ref, ...defined({ subresource }), readVersion }),
        competingWriters,
      };
      const read = objects.get(key);
      const isOwn = read === undefined || versionOf(read) !== readVersion;
      keep(lost, key, { before: isOwn ? withServerTimes(written) : read, isOwn, record });
      return record;
    },
    noteObject(target, object) {
      const version = versionOf(object);
      if (version === undefined || target.name === undefined) return;
      const key = keyOf(target);
      keep(objects, key, object);
      const write = lost.get(key);
      if (write === undefined) return;
      lost.delete(key);
      const { before, isOwn, record } = write;
      const writers = findCompetingWriters(before, object, { sensitive: isSensitive(target) });
      record.foundVersion = version;
      record.competingWriters.push(
        ...(isOwn ? writers.filter((writer) => hasMoved(writer, before, object)) : writers),
      );
    },
  };
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_KEPT && oldest !== undefined) map.delete(oldest);
}

function keyOf({ group, resource, namespace = "", name = "" }: Target): string {
  return `${resourceId({ group, resource })}/${namespace}/${name}`;
}

function versionOf(object: JsonObject): string | undefined {
  const version = metadataOf(object)["resourceVersion"];
  return typeof version === "string" && version !== "" ? version : undefined;
}

/** Whether the writer has an entry in the managed fields that the object did not have before. */
function hasMoved({ manager }: CompetingWriter, before: JsonObject, found: JsonObject): boolean {
  const known = entriesOf(before);
  return entriesOf(found).some(
    (entry) => entry["manager"] === manager && !known.some((other) => jsonEquals(other, entry)),
  );
}

function entriesOf(object: JsonObject): JsonObject[] {
  const entries = metadataOf(object)["managedFields"];
  return Array.isArray(entries) ? entries.filter(isJsonObject) : [];
}

/** client-node writes times with milliseconds, the server without; other times would look like other writes. */
function withServerTimes(written: JsonObject): JsonObject {
  const managedFields = entriesOf(written).map((entry) =>
    typeof entry["time"] === "string"
      ? { ...entry, time: entry["time"].replace(/\.000Z$/, "Z") }
      : entry,
  );
  return { ...written, metadata: { ...metadataOf(written), managedFields } };
}
