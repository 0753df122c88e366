import {
  defined,
  diffMergePatch,
  isJsonObject,
  KonvergeError,
  type JsonObject,
} from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { hasLists } from "./field-ownership.ts";
import { mergeIntent } from "./merge-intent.ts";
import { asNew, basedOn, nextObject, type Wanted } from "./next-object.ts";
import {
  finalizersOf,
  isTerminatingView,
  metadataOf,
  textOf,
  withMetadata,
  withoutMetadata,
} from "./object-fields.ts";
import {
  fail,
  fieldConflict,
  newFinalizers,
  inapplicable,
  modified,
  notFound,
  replaced,
  succeed,
} from "./planned-answer.ts";
import { dry, isTrial, labelOf, pathOnly, queryOf, type ObjectPlace } from "./planned-call.ts";
import { createPlanned, sendCreate } from "./create-planned.ts";
import { inGeneration, isNew, managerOf, type PlannedObject } from "./planned-objects.ts";
import { readBefore } from "./read-planned.ts";
import { applierOf, writeOf, type Writing } from "./writing.ts";

/** Plans a PUT or PATCH of an object or its subresource. */
export async function writePlanned(writing: Writing, place: ObjectPlace): Promise<ApiAnswer> {
  const { objects, call } = writing;
  const known = objects.find(place);
  if (known === undefined) return await writeFirst(writing, place);
  if (known.view === undefined) {
    if (call.verb !== "apply" || place.subresource !== undefined) {
      return await fail(call, place, notFound(place));
    }
    return await createPlanned(writing, place);
  }
  return await writeAgain(writing, place, { known, view: known.view });
}

/** The server computes the first write of an object. */
async function writeFirst(writing: Writing, place: ObjectPlace): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  if (isTrial(call)) return await live(call);
  const read = await readBefore(writing, place);
  let before = read.object;
  const isMissing = before === undefined && read.isReadable;
  if (isMissing && call.verb === "apply" && place.subresource === undefined) {
    return await createPlanned(writing, place);
  }
  const answer = await live(dry(call));
  const { value } = answer;
  if (!isJsonObject(value)) return answer;
  // It has changed since it was read: a dry run keeps the version of the stored object.
  if (
    before !== undefined &&
    textOf(value, "resourceVersion") !== textOf(before, "resourceVersion")
  ) {
    before = (await readBefore(writing, place, { again: true })).object ?? before;
  }
  const object = objects.add(place, before ?? value);
  object.statusWritten = place.subresource === "status";
  object.applier = applierOf(call);
  return succeed(call, objects.settle(object, value, writeOf(call, place)));
}

interface Known {
  readonly known: PlannedObject;
  readonly view: JsonObject;
}

async function writeAgain(
  writing: Writing,
  place: ObjectPlace,
  { known, view }: Known,
): Promise<ApiAnswer> {
  const { objects, call } = writing;
  const wanted = nextObject(view, call);
  const refused = await refuse(writing, place, { known, view, wanted });
  if (refused !== undefined) return refused;
  const next = await resultOf(writing, place, { known, view, wanted });
  if (isTerminatingView(view)) {
    const added = finalizersOf(next).filter((each) => !finalizersOf(view).includes(each));
    if (added.length > 0) return await fail(call, place, newFinalizers(place, added));
  }
  if (isTrial(call)) return succeed(call, inGeneration(view, next));
  if (place.subresource === "status") known.statusWritten = true;
  if (known.applier !== applierOf(call)) known.applier = undefined;
  return succeed(call, objects.settle(known, next, writeOf(call, place)));
}

/** Answers a write whose preconditions fail. */
async function refuse(
  { call }: Writing,
  place: ObjectPlace,
  { known, view, wanted }: Result,
): Promise<ApiAnswer | undefined> {
  switch (wanted.kind) {
    case "conflict":
      return await fail(call, place, modified(place));
    case "replaced": {
      const { given } = wanted;
      return await fail(call, place, replaced(place, { given, uid: textOf(view, "uid") ?? "" }));
    }
    case "inapplicable":
      return await fail(call, place, inapplicable());
    case "unknown":
      throw new KonvergeError(
        "not_plannable",
        `a second write of ${labelOf(place)} cannot be planned, because its body is not JSON`,
      );
    case "merge": {
      if (call.verb !== "apply" || queryOf(call.path).get("force") === "true") return undefined;
      const id = managerOf(writeOf(call, place));
      const conflicts = known.ownership.conflicts(id, wanted.intent, view);
      return conflicts.length === 0 ? undefined : await fail(call, place, fieldConflict(conflicts));
    }
    case "object":
      return undefined;
  }
}

interface Result extends Known {
  readonly wanted: Wanted;
}

/** The object after a write, as far as the server can check it. */
async function resultOf(writing: Writing, place: ObjectPlace, result: Result): Promise<JsonObject> {
  const { known, view, wanted } = result;
  const next =
    wanted.kind === "merge"
      ? withoutOmitted(
          writing,
          place,
          { known, intent: wanted.intent },
          await mergedBy(writing, place, { ...result, intent: wanted.intent }),
        )
      : wanted.kind === "object"
        ? wanted.object
        : view;
  if (place.subresource === "status")
    return await withStatus(writing, place, { known, view, next });
  if (wanted.kind === "merge" && isWholeApply(writing.call, known)) return next;
  const checked = isNew(known)
    ? await sendCreate(writing, known, asNew(next))
    : await sendDifference(writing, place, { known, view, next });
  return asPlanned(checked, { known, view });
}

/** An apply removes the fields that its manager has applied before and omits now. */
function withoutOmitted(
  { call }: Writing,
  place: ObjectPlace,
  { known, intent }: { readonly known: PlannedObject; readonly intent: JsonObject },
  merged: JsonObject,
): JsonObject {
  if (call.verb !== "apply") return merged;
  return known.ownership.withoutOmitted(managerOf(writeOf(call, place)), intent, merged);
}

/** True if the last apply of the only applier replaces its earlier ones. */
function isWholeApply(call: PlannedCall, { applier }: PlannedObject): boolean {
  return applier !== undefined && applier === applierOf(call);
}

/** An apply or a strategic merge patch, which the server computes on the object without the earlier planned writes. */
async function mergedBy(
  writing: Writing,
  place: ObjectPlace,
  { known, view, intent }: Known & { readonly intent: JsonObject },
): Promise<JsonObject> {
  const { call, live, objects } = writing;
  const { before } = known;
  const whole = isWholeApply(call, known);
  if (isNew(known) && !(whole && place.subresource === undefined)) {
    return mergeIntent({ view, before: view, result: undefined, intent, onUnknown: noteList });
  }
  const named =
    known.standIn === undefined ? intent : withMetadata(intent, { name: known.standIn });
  const path =
    known.standIn === undefined
      ? call.path
      : call.path.replace(`/${place.name}`, `/${known.standIn}`);
  const { value } = await live(
    dry({
      ...call,
      path: hasLists(intent) ? path : forced(call, path),
      body: JSON.stringify(named),
    }),
  );
  const result = isJsonObject(value) ? value : view;
  if (whole && place.subresource === undefined) return asPlanned(result, { known, view });
  return mergeIntent({ view, before: before ?? view, result, intent, onUnknown: noteList });

  function noteList(path_: string): void {
    objects.noteGap(
      `${labelOf(place)} ${path_}`,
      "two writes change this list, and the server merges its items in a way that the plan does not compute",
    );
  }
}

/** The owners on the server do not count: those of the planned object are compared here. */
function forced({ verb }: Writing["call"], path: string): string {
  if (verb !== "apply") return path;
  const query = queryOf(path);
  query.set("force", "true");
  return `${pathOnly(path)}?${query.toString()}`;
}

/** A status does not change the rest of the object. */
async function withStatus(
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
async function sendDifference(
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
function asPlanned(checked: JsonObject, { known, view }: Known): JsonObject {
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
