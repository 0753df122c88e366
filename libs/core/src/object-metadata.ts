import { isJsonObject, type JsonObject } from "./lossless-json.ts";

/** The fields of the metadata that only the API server sets. */
export const SERVER_METADATA: readonly string[] = [
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "selfLink",
  "managedFields",
];

/** The metadata of an object; an empty object if it has none. */
export function metadataOf(object: JsonObject): JsonObject {
  const metadata = object["metadata"];
  return isJsonObject(metadata) ? metadata : {};
}
