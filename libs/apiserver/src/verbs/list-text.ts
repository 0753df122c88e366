import { formatApiVersion, type JsonObject } from "@konverge/core";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { viewOf } from "./call.ts";

/** Returns the JSON of a list. For built-in kinds only the list itself has kind and apiVersion, not its items. */
export function formatList(
  kind: ResourceKind,
  objects: readonly StoredObject[],
  metadata: JsonObject,
): string {
  // Go writes this member of a custom resource's list even if it is empty.
  const shown = kind.isCustom ? { continue: "", ...metadata } : metadata;
  const head = `{"kind":${JSON.stringify(kind.listKind)},"apiVersion":${JSON.stringify(formatApiVersion(kind.group, kind.version))}`;
  const items = objects.map((stored) => itemText(kind, viewOf(kind, stored)));
  return `${head},"metadata":${JSON.stringify(shown)},"items":[${items.join(",")}]}`;
}

const bareTexts: WeakMap<StoredObject, string> = new WeakMap();

function itemText({ isCustom }: ResourceKind, view: StoredObject): string {
  if (isCustom) return view.text;
  let text = bareTexts.get(view);
  if (text === undefined) {
    const { kind: _kind, apiVersion: _apiVersion, ...rest } = view.object;
    text = JSON.stringify(rest);
    bareTexts.set(view, text);
  }
  return text;
}
