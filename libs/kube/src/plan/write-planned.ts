import { isJsonObject, KonvergeError } from "@konverge/core";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { createPlanned, withPlaceholders } from "./create-planned.ts";
import { nextObject } from "./next-object.ts";
import { finalizersOf, isTerminatingView, textOf } from "./object-fields.ts";
import {
  fail,
  fieldConflict,
  inapplicable,
  modified,
  newFinalizers,
  notFound,
  replaced,
  succeed,
} from "./planned-answer.ts";
import { isTrial, dry, labelOf, queryOf, type ObjectPlace } from "./planned-call.ts";
import { inGeneration, managerOf } from "./planned-object.ts";
import { readBefore } from "./read-planned.ts";
import type { Known } from "./send-planned.ts";
import { applierOf, writeOf, type Writing } from "./writing.ts";
import { resultOf, type Result } from "./written-object.ts";

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
  if (textOf(value, "resourceVersion") !== (before && textOf(before, "resourceVersion"))) {
    before = (await readBefore(writing, place, { again: true })).object ?? before;
  }
  // A PUT creates some kinds, for example a Lease.
  const isCreated = isMissing && before === undefined;
  const object = objects.add(place, isCreated ? undefined : (before ?? value));
  object.statusWritten = place.subresource === "status";
  object.applier = applierOf(call);
  const next = isCreated
    ? withPlaceholders(value, { name: place.name, uid: objects.nextUid(place) })
    : value;
  const settled = objects.settle(object, next, writeOf(call, place));
  return succeed(call, settled, answer.status);
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
