import { defined, diffMergePatch, isJsonObject, type JsonObject } from "@konverge/core";
import { asNew, basedOn } from "./next-object.ts";
import { metadataOf, withMetadata, withoutMetadata } from "./object-fields.ts";
import { dry, labelOf, pathOnly, queryOf, type ObjectPlace } from "./planned-call.ts";
import { isNew, type PlannedObject } from "./planned-object.ts";
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
  const answer =
    call.method === "PUT"
      ? await sendBody(
          writing,
          "application/json",
          basedOn(before, { ...before, status: wanted ?? null }),
        )
      : await sendBody(writing, "application/merge-patch+json", basedOn(before, { status }));
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
  if (call.method === "PUT" && place.subresource === undefined) {
    return await sendBody(writing, "application/json", basedOn(before, asNew(next)));
  }
  return await sendBody(writing, "application/merge-patch+json", basedOn(before, patch));
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
