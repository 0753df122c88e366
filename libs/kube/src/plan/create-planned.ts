import {
  defined,
  isJsonObject,
  KonvergeError,
  metadataOf,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { findApiError } from "../errors/api-exception.ts";
import { isInvalid, isNotFound } from "../errors/error-predicates.ts";
import { textOf, withMetadata } from "./object-fields.ts";
import { alreadyExists, fail, modified, replaced, succeed } from "./planned-answer.ts";
import { bodyOf, dry, isTrial, labelOf, queryOf, type Place } from "./planned-call.ts";
import type { PlannedObject } from "./planned-object.ts";
import { objectPathOf } from "./read-planned.ts";
import { applierOf, writeOf, type Writing } from "./writing.ts";

/** Plans a POST to a collection, or the apply of an object that does not exist. */
export async function createPlanned(writing: Writing, place: Place): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const body = bodyOf(call);
  if (body === undefined) {
    throw new KonvergeError(
      "not_plannable",
      `a new ${place.resource} cannot be planned, because the body is not a JSON object`,
    );
  }
  const name = place.name ?? textOf(body, "name");
  const at = name === undefined ? undefined : { ...place, name };
  const known = at && objects.find(at);
  if (at !== undefined && known?.view !== undefined) {
    return await fail(call, at, alreadyExists(at, at.name));
  }
  if (at !== undefined && known !== undefined && call.verb === "apply") {
    const { uid, resourceVersion } = metadataOf(body);
    // An apply with preconditions does not create the object again.
    if (typeof uid === "string") return await fail(call, at, replaced(at, { given: uid, uid: "" }));
    if (typeof resourceVersion === "string" && resourceVersion !== "1") {
      return await fail(call, at, modified(at));
    }
  }
  if (isTrial(call)) return await live(call);
  // The server refuses to check a second object with the name of one that is deleted only in the plan.
  const standIn = known?.before === undefined ? undefined : standInFor(at?.name ?? "");
  if (standIn !== undefined && at !== undefined) {
    objects.noteGap(
      labelOf(at),
      "it is deleted and created again, so the server has checked the new one under another name",
    );
  }
  const { object, unchecked } = await send(writing, place, { body, name, standIn });
  if (!isObject(object)) return succeed(call, object, 201);
  const given = name ?? objects.nextName(place, textOf(body, "generateName") ?? "");
  const named = { ...place, name: given };
  const created = withPlaceholders(object, { name: given, uid: objects.nextUid(named) });
  const added = known ?? objects.add(named, undefined);
  added.standIn = standIn;
  added.statusWritten = false;
  added.applier = applierOf(call);
  if (unchecked !== undefined) objects.noteGap(labelOf(named), unchecked);
  const settled = objects.settle(added, created, writeOf(call, named));
  return succeed(call, settled, 201);
}

interface Sending {
  readonly body: JsonObject;
  readonly name: string | undefined;
  readonly standIn: string | undefined;
}

async function send(
  { objects, call, live }: Writing,
  place: Place,
  { body, name, standIn }: Sending,
): Promise<{ readonly object: JsonObject; readonly unchecked?: string }> {
  const sent =
    standIn === undefined
      ? call
      : {
          ...call,
          path: renamed(call.path, place, standIn),
          body: JSON.stringify(withMetadata(body, { name: standIn })),
        };
  try {
    const { value } = await live(dry(sent));
    return { object: isJsonObject(value) ? value : body };
  } catch (error) {
    const unchecked = reasonOf(error, { objects, place, standIn });
    if (unchecked === undefined) throw error;
    const creationTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
    const namespace = place.namespace === undefined ? {} : { namespace: place.namespace };
    const own = { creationTimestamp, ...namespace, ...defined({ name }) };
    return { object: withMetadata(body, { ...own, uid: "unchecked" }), unchecked };
  }
}

interface Unchecked {
  readonly objects: Writing["objects"];
  readonly place: Place;
  readonly standIn: string | undefined;
}

/** The reason why the server cannot check a new object; undefined for an error of the live write. */
function reasonOf(error: unknown, { objects, place, standIn }: Unchecked): string | undefined {
  if (isNotFound(error) && dependsOnPlan(objects.written, place)) {
    return "the server has not checked it, because its namespace or kind exists only in the plan";
  }
  // Of a CustomResourceDefinition, for example, the name follows from the content.
  const causes = isInvalid(error) ? (findApiError(error)?.causes ?? []) : [];
  return standIn !== undefined && causes.some(({ field }) => field === "metadata.name")
    ? "the server has not checked it, because it rejects another name"
    : undefined;
}

/** True if the namespace or the definition of the kind is created by the plan. */
function dependsOnPlan(written: readonly PlannedObject[], { namespace, group }: Place): boolean {
  return written.some(({ place, before, view }) => {
    if (before !== undefined || view === undefined) return false;
    if (place.resource === "namespaces" && place.group === "") return place.name === namespace;
    return place.resource === "customresourcedefinitions" && place.name.endsWith(`.${group}`);
  });
}

/** Sends the whole planned object, for its defaults and for the checks of the server. */
export async function sendCreate(
  { call, live, objects }: Writing,
  { place, standIn }: PlannedObject,
  object: JsonObject,
): Promise<JsonObject> {
  const named = standIn === undefined ? object : withMetadata(object, { name: standIn });
  const query = queryOf(call.path);
  query.delete("force");
  const { name: _name, ...collection } = place;
  const path = `${objectPathOf(call.path, collection)}?${query.toString()}`;
  const sent = { ...call, verb: "create", method: "POST", path, subresource: undefined } as const;
  const body = JSON.stringify(named);
  try {
    const { value } = await live(dry({ ...sent, contentType: "application/json", body }));
    return isJsonObject(value) ? value : object;
  } catch (error) {
    if (reasonOf(error, { objects, place, standIn }) === undefined) throw error;
    return object;
  }
}

/** At most 63 characters: long names keep their start. */
function standInFor(name: string): string {
  return `${name.slice(0, 49).replace(/[^a-z0-9]+$/, "")}-konverge-plan`;
}

/** The path of an apply under another name. */
export function renamed(path: string, place: Place, name: string): string {
  if (place.name === undefined) return path;
  const [, query = ""] = path.split("?", 2);
  return `${objectPathOf(path, { ...place, name })}?${query}`;
}

/** The server does not store reviews, for example. */
function isObject(object: JsonObject): boolean {
  return textOf(object, "uid") !== undefined;
}

/** The object with a name and a uid that do not change from plan to plan, even where the server has copied them. */
export function withPlaceholders(
  object: JsonObject,
  { name, uid }: { readonly name: string; readonly uid: string },
): JsonObject {
  const drawn = textOf(object, "uid");
  const drawnName = textOf(object, "name");
  const replace = (value: JsonValue): JsonValue => {
    if (typeof value === "string") {
      if (value === drawn) return uid;
      return value === drawnName ? name : value;
    }
    if (Array.isArray(value)) return value.map(replace);
    if (!isJsonObject(value)) return value;
    const members = Object.entries(value).map(([key, member]) => [key, replace(member)] as const);
    return Object.fromEntries(members);
  };
  return withMetadata(replace(object) as JsonObject, { name, uid });
}
