import { formatApiVersion, isJsonObject, type JsonObject, type ResourceType } from "@konverge/core";
import type { ObjectPage } from "../contract/kube-client.ts";

/** Parses a list response. Adds the apiVersion and kind that servers omit from list items. */
export function toPage<T>(list: JsonObject, type: ResourceType): ObjectPage<T> {
  const rawItems = list["items"];
  const metadata = isJsonObject(list["metadata"]) ? list["metadata"] : {};
  const items = Array.isArray(rawItems) ? rawItems.filter(isJsonObject) : [];
  const apiVersion = formatApiVersion(type.group, type.version);
  for (const item of items) {
    item["apiVersion"] ??= apiVersion;
    item["kind"] ??= type.kind;
  }
  const { resourceVersion, continue: token, remainingItemCount } = metadata;
  return {
    items: items as T[],
    resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "",
    ...(typeof token === "string" && token !== "" ? { continueToken: token } : {}),
    ...(typeof remainingItemCount === "number" ? { remainingItemCount } : {}),
  };
}
