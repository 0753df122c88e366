import { isJsonObject, type JsonObject } from "@konverge/core";
import { renamed, sendCreate } from "./create-planned.ts";
import { hasLists } from "./field-ownership.ts";
import { mergeIntent } from "./merge-intent.ts";
import { asNew, type Wanted } from "./next-object.ts";
import { withMetadata } from "./object-fields.ts";
import { dry, labelOf, pathOnly, queryOf, type ObjectPlace } from "./planned-call.ts";
import { isNew, managerOf, type PlannedObject } from "./planned-object.ts";
import { asPlanned, sendDifference, withStatus, type Known } from "./send-planned.ts";
import { applierOf, writeOf, type Writing } from "./writing.ts";

export interface Result extends Known {
  readonly wanted: Wanted;
}

/** The object after a write, as far as the server can check it. */
export async function resultOf(
  writing: Writing,
  place: ObjectPlace,
  result: Result,
): Promise<JsonObject> {
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
function isWholeApply(call: Writing["call"], { applier }: PlannedObject): boolean {
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
  const merge = { view, intent, isApply: call.verb === "apply", onUnknown: noteList };
  if (isNew(known) && !(whole && place.subresource === undefined)) {
    return mergeIntent({ ...merge, before: view, result: undefined });
  }
  const named =
    known.standIn === undefined ? intent : withMetadata(intent, { name: known.standIn });
  const path = known.standIn === undefined ? call.path : renamed(call.path, place, known.standIn);
  const { value } = await live(
    dry({
      ...call,
      path: hasLists(intent) ? path : forced(call, path),
      body: JSON.stringify(named),
    }),
  );
  const result = isJsonObject(value) ? value : view;
  if (whole && place.subresource === undefined) return asPlanned(result, { known, view });
  return mergeIntent({ ...merge, before: before ?? view, result });

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
