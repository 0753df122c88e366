import {
  applyMergePatch,
  defined,
  diffMergePatch,
  isJsonObject,
  metadataOf,
  type JsonObject,
} from "@konverge/core";
import { isOptimisticConflict } from "../errors/error-predicates.ts";
import { asNew, basedOn } from "./next-object.ts";
import { textOf, withMetadata, withoutMetadata } from "./object-fields.ts";
import { dry, labelOf, pathOnly, queryOf, type ObjectPlace } from "./planned-call.ts";
import { isNew, type PlannedObject } from "./planned-object.ts";
import { readBefore } from "./read-planned.ts";
import type { Writing } from "./writing.ts";

/** A planned object that is written again. */
export interface Known {
  readonly known: PlannedObject;
  readonly view: JsonObject;
}

/** A status does not change the rest of the object. */
export async function withStatus(
  writing: Writing,
  place: ObjectPlace,
  { known, view, next }: Known & { readonly next: JsonObject },
): Promise<JsonObject> {
  const { call, objects } = writing;
  const { before } = known;
  if (before === undefined || isNew(known)) {
    objects.noteGap(
      labelOf(place),
      "the server has not checked its status, because the object exists only in the plan",
    );
    return { ...view, ...defined({ status: next["status"] }) };
  }
  const old = before["status"];
  const wanted = next["status"];
  const status = isJsonObject(old) && isJsonObject(wanted) ? diffMergePatch(old, wanted) : wanted;
  if (status === undefined) return { ...view, ...defined({ status: wanted }) };
  const answer = await rebased(writing, place, known, async (current) =>
    call.method === "PUT"
      ? await sendBody(
          writing,
          "application/json",
          basedOn(current, { ...current, status: wanted ?? null }),
        )
      : await sendBody(writing, "application/merge-patch+json", basedOn(current, { status })),
  );
  return { ...view, ...defined({ status: answer["status"] }) };
}

/** Sends all planned changes of the object as one write. */
export async function sendDifference(
  writing: Writing,
  place: ObjectPlace,
  { known, view, next }: Known & { readonly next: JsonObject },
): Promise<JsonObject> {
  const { before = view } = known;
  const { call } = writing;
  // The status is written on its own.
  const from = known.statusWritten ? { ...before, ...defined({ status: view["status"] }) } : before;
  const patch = diffMergePatch(forDifference(from), forDifference(next));
  if (patch === undefined) return before;
  return await rebased(writing, place, known, async (current) => {
    if (call.method !== "PUT" || place.subresource !== undefined) {
      return await sendBody(writing, "application/merge-patch+json", basedOn(current, patch));
    }
    const whole = current === before ? next : (applyMergePatch(current, patch) as JsonObject);
    return await sendBody(writing, "application/json", basedOn(current, asNew(whole)));
  });
}

/** Sends a planned change; once more if the object on the server has changed since the plan has read it. */
export async function rebased<T>(
  writing: Writing,
  place: ObjectPlace,
  known: PlannedObject,
  send: (before: JsonObject) => Promise<T>,
): Promise<T> {
  const { before = {} } = known;
  try {
    return await send(before);
  } catch (error) {
    if (!isOptimisticConflict(error)) throw error;
    writing.objects.noteChanged(known.place);
    const { object } = await readBefore(writing, place, { again: true });
    // The change of another object with the name was planned for the old one.
    if (object === undefined || textOf(object, "uid") !== textOf(before, "uid")) throw error;
    known.before = object;
    return await send(object);
  }
}

async function sendBody(
  { call, live }: Writing,
  contentType: string,
  body: JsonObject,
): Promise<JsonObject> {
  const query = queryOf(call.path);
  query.delete("force");
  const path = `${pathOnly(call.path)}?${query.toString()}`;
  const sent = { ...call, path, contentType, body: JSON.stringify(body) };
  const { value } = await live(dry(sent));
  return isJsonObject(value) ? value : body;
}

const IDENTITY = [
  "uid",
  "name",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
];

/** The checked object with what only the plan has: its identity, and a status that was written on its own. */
export function asPlanned(checked: JsonObject, { known, view }: Known): JsonObject {
  const identity = IDENTITY.map((field) => [field, metadataOf(view)[field]] as const);
  const kept = Object.fromEntries(identity.filter(([, value]) => value !== undefined));
  const object = withMetadata(checked, kept as JsonObject);
  if (!known.statusWritten) return object;
  const { status: _status, ...rest } = object;
  return { ...rest, ...defined({ status: view["status"] }) };
}

function forDifference(object: JsonObject): JsonObject {
  return withoutMetadata(object, [
    "managedFields",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
  ]);
}
