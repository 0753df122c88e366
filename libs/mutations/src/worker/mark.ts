import { createHash } from "node:crypto";
import { isJsonObject, metadataOf, setOwn, type JsonObject } from "@konverge/core";
import { MARK_PREFIX } from "../change/find-restrictions.ts";

const HASH_CHARS = 16;

/** Returns the name of the annotation with the id of the last plan that was written. Other installations that change the same object have another one. */
export function markName(place: {
  /** Random id of the Redis. */
  readonly installation: string;
  readonly prefix: string;
  readonly cluster: string;
}): string {
  const { installation, prefix, cluster } = place;
  const text = JSON.stringify([installation, prefix, cluster]);
  return MARK_PREFIX + createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}

export function markIn(object: JsonObject, name: string): string | undefined {
  const annotations = metadataOf(object)["annotations"];
  const value = isJsonObject(annotations) ? annotations[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Returns the object with the mark; it shares all other parts. */
export function withMark(object: JsonObject, name: string, text: string): JsonObject {
  const metadata = metadataOf(object);
  const given = metadata["annotations"];
  const annotations = { ...(isJsonObject(given) ? given : {}) };
  setOwn(annotations, name, text);
  return { ...object, metadata: { ...metadata, annotations } };
}
