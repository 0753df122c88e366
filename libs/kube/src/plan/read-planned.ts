import { isJsonObject, type JsonObject } from "@konverge/core";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { isForbidden, isNotFound } from "../errors/error-predicates.ts";
import { textOf } from "./object-fields.ts";
import { fail, notFound, show } from "./planned-answer.ts";
import {
  apiVersionOf,
  isNamed,
  labelOf,
  pathOnly,
  type ObjectPlace,
  type Place,
} from "./planned-call.ts";
import type { Writing } from "./writing.ts";

/** Answers a read of one object or of its status. */
export async function getPlanned(writing: Writing, place: ObjectPlace): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const known = objects.find(place);
  if (known !== undefined) {
    if (known.view === undefined) return await fail(call, place, notFound(place));
    return show(call, inVersion(writing, place, known.view));
  }
  try {
    const answer = await live(call);
    noteRead(writing, place, answer);
    return answer;
  } catch (error) {
    if (isNotFound(error)) objects.noteRead(place, undefined);
    throw error;
  }
}

/** An object of another version of its kind, which only the server converts. */
export function inVersion({ objects }: Writing, place: Place, view: JsonObject): JsonObject {
  const apiVersion = apiVersionOf(place);
  if (view["apiVersion"] === undefined || view["apiVersion"] === apiVersion) return view;
  objects.noteGap(
    labelOf(place),
    `it was written as ${String(view["apiVersion"])} and read as ${apiVersion}, which only the server converts`,
  );
  return { ...view, apiVersion };
}

function noteRead({ objects }: Writing, place: Place, { value, text }: ApiAnswer): void {
  if (!isJsonObject(value)) return;
  objects.noteRead(place, textOf(value, "resourceVersion"));
  // A part of an object cannot be compared with its next version.
  if (value["kind"] !== "PartialObjectMetadata") objects.noteSeen(place, value, text.length);
}

interface Before {
  /** Undefined if it does not exist, or may not be read. */
  readonly object: JsonObject | undefined;
  readonly isReadable: boolean;
}

/** Reads the object that a write changes, unless the attempt has read it. */
export async function readBefore(
  { objects, call, live }: Writing,
  { subresource: _part, ...place }: ObjectPlace,
  { again = false }: { readonly again?: boolean } = {},
): Promise<Before> {
  const seen = again ? undefined : objects.seen(place);
  if (seen !== undefined) return { object: seen, isReadable: true };
  const path = objectPathOf(call.path, place);
  const { sensitive, ref } = call;
  try {
    const { value, text } = await live({
      verb: "get",
      method: "GET",
      path,
      sensitive,
      ref,
      ...NOTHING,
    });
    const object = isJsonObject(value) ? value : undefined;
    if (object !== undefined) {
      objects.noteRead(place, textOf(object, "resourceVersion"));
      objects.noteSeen(place, object, text.length);
    }
    return { object, isReadable: true };
  } catch (error) {
    if (isNotFound(error)) {
      objects.noteRead(place, undefined);
      return { object: undefined, isReadable: true };
    }
    if (!isForbidden(error)) throw error;
    objects.noteGap(
      labelOf(place),
      "the worker may not read it, so its current content is unknown",
    );
    return { object: undefined, isReadable: false };
  }
}

/** Ends the members of the call that the read replaces. */
const NOTHING = {
  body: undefined,
  contentType: undefined,
  accept: undefined,
  onAnswer: undefined,
  subresource: undefined,
} as const;

/** The path of the object of a call, whose own path may be that of its collection or of a subresource. */
export function objectPathOf(path: string, place: Place): string {
  const parts = pathOnly(path).split("/");
  const collection = parts.slice(0, collectionLength(parts));
  return [...collection, ...(isNamed(place) ? [encodeURIComponent(place.name)] : [])].join("/");
}

/** `/api/v1/...` or `/apis/{group}/{version}/...`, with `namespaces/{namespace}` or without. */
function collectionLength(parts: readonly string[]): number {
  const rest = parts[1] === "api" ? 3 : 4;
  const last = parts[rest + 2];
  const inNamespace =
    parts[rest] === "namespaces" && last !== undefined && last !== "status" && last !== "finalize";
  return inNamespace ? rest + 3 : rest + 1;
}
