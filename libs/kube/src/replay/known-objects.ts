import { defined, isJsonObject, metadataOf, parseJson, type JsonObject } from "@konverge/core";
import { finalizersOf } from "../plan/object-fields.ts";
import { apiVersionOf, type ObjectPlace, type Place } from "../plan/planned-call.ts";
import { idOf, writtenPlace, type RecordedEntry } from "./recorded-entry.ts";

/** The latest state of each object that a replay has seen; null for one that does not exist. */
export class KnownObjects {
  readonly #objects = new Map<string, JsonObject | null>();

  /** Undefined if it was never seen. */
  get(place: Place): JsonObject | null | undefined {
    return this.#objects.get(idOf(place));
  }

  set(place: Place, object: JsonObject | null): void {
    this.#objects.set(idOf(place), object);
  }

  /** Notes the objects in the answer of a call. */
  note({ call, place }: RecordedEntry): void {
    const { answer, method } = call;
    if (answer === undefined || place === undefined) return;
    const { subresource, ...whole } = place;
    if (subresource !== undefined && subresource !== "status") {
      // Its effect on the object is not in the answer.
      if (method !== "GET" && answer.status < 300) this.#objects.delete(idOf(whole));
      return;
    }
    if (method === "GET" && answer.status === 404 && whole.name !== undefined) {
      this.set(whole, null);
      return;
    }
    if (answer.status >= 300) return;
    const value = parsed(answer.body);
    if (!isJsonObject(value) || isPart(value)) return;
    if (method === "GET" && whole.name === undefined) {
      this.#noteItems(whole, value);
      return;
    }
    const at = writtenPlace(call);
    if (at?.name === undefined) return;
    if (method === "DELETE") {
      const isKept = finalizersOf(value).length > 0 || graceOf(value) > 0;
      this.set(at, isKept && metadataOf(value)["uid"] !== undefined ? value : null);
    } else if (typeof metadataOf(value)["name"] === "string") this.set(at, value);
  }

  #noteItems(place: Place, list: JsonObject): void {
    const { items, kind } = list;
    if (!Array.isArray(items)) return;
    const own = { apiVersion: apiVersionOf(place), kind: String(kind ?? "").replace(/List$/, "") };
    for (const item of items) if (isJsonObject(item)) this.noteObject(place, { ...own, ...item });
  }

  /** Notes an object of the kind. */
  noteObject(place: Place, object: JsonObject): void {
    const { namespace, name } = metadataOf(object);
    if (typeof name !== "string") return;
    const at: ObjectPlace = { ...place, name };
    this.set({ ...at, ...defined({ namespace: namespace as string | undefined }) }, object);
  }
}

function graceOf(object: JsonObject): number {
  return Number(metadataOf(object)["deletionGracePeriodSeconds"] ?? 0);
}

function isPart({ kind }: JsonObject): boolean {
  return ["PartialObjectMetadata", "PartialObjectMetadataList", "Table"].includes(String(kind));
}

function parsed(body: string): unknown {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
}
