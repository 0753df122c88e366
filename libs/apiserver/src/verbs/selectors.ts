import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { badRequest } from "../errors/status-error.ts";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { getPath } from "../objects/dotted-path.ts";
import { metadataOf, objectOf, objectsOf, stringsOf, textOf } from "../objects/metadata.ts";
import { parseFieldSelector } from "./field-selector.ts";
import {
  parseInteger,
  parseLabelSelector,
  SelectorError,
  type LabelRequirement,
} from "./label-selector.ts";

/** Returns whether an object belongs to a list or watch. */
export type Selector = (object: JsonObject) => boolean;

/**
 * Parses the selectors of a query; undefined without any.
 * @throws StatusError 400 for an invalid one, or for a field that cannot be selected
 */
export function readSelector(kind: ResourceKind, query: URLSearchParams): Selector | undefined {
  const labels = query.get("labelSelector") ?? "";
  const fields = query.get("fieldSelector") ?? "";
  if (labels.trim() === "" && fields.trim() === "") return undefined;
  const tests = [...parseLabels(labels), ...parseFields(kind, fields)];
  return (object) => tests.every((test) => test(object));
}

/** Returns whether an object's labels match a LabelSelector; an absent one matches nothing. */
export function matchesLabels(object: JsonObject, selector: JsonValue | undefined): boolean {
  if (!isJsonObject(selector)) return false;
  const labels = Object.entries(objectOf(selector, "matchLabels") ?? {});
  return (
    labels.every(([key, value]) => labelOf(object, key) === value) &&
    objectsOf(selector, "matchExpressions").every((expression) => {
      const own = labelOf(object, textOf(expression, "key"));
      const isListed = own !== undefined && stringsOf(expression, "values").includes(own);
      switch (expression["operator"]) {
        case "In":
          return isListed;
        case "NotIn":
          return !isListed;
        case "Exists":
          return own !== undefined;
        default:
          return own === undefined;
      }
    })
  );
}

function parseLabels(text: string): Selector[] {
  try {
    return parseLabelSelector(text).map(matcherOf);
  } catch (error) {
    if (error instanceof SelectorError) throw badRequest(error.message);
    throw error;
  }
}

function matcherOf({ key, operator, values }: LabelRequirement): Selector {
  const wanted = new Set(values);
  const isListed = (own: string | undefined) => own !== undefined && wanted.has(own);
  switch (operator) {
    case "exists":
      return (object) => labelOf(object, key) !== undefined;
    case "!":
      return (object) => labelOf(object, key) === undefined;
    case "=":
    case "in":
      return (object) => isListed(labelOf(object, key));
    case "!=":
    case "notin":
      return (object) => !isListed(labelOf(object, key));
    case "<":
    case ">":
      return (object) => compares(labelOf(object, key), operator, values[0] ?? "");
  }
}

/** Labels that are not integers match no comparison. */
function compares(own: string | undefined, operator: "<" | ">", value: string): boolean {
  const [left, right] = [parseInteger(own ?? ""), parseInteger(value)];
  if (left === undefined || right === undefined) return false;
  return operator === "<" ? left < right : left > right;
}

function parseFields(kind: ResourceKind, text: string): Selector[] {
  const selectable = new Set([
    "metadata.name",
    ...(kind.namespaced ? ["metadata.namespace"] : []),
    ...kind.selectableFields,
  ]);
  return parseFieldSelector(text).map(({ field, isNegated, value }) => {
    if (!selectable.has(field)) {
      throw badRequest(
        kind.isCustom
          ? `field label not supported: ${field}`
          : `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
      );
    }
    return (object) => (fieldOf(object, field) === value) !== isNegated;
  });
}

function labelOf(object: JsonObject, key: string): string | undefined {
  const labels = objectOf(metadataOf(object), "labels") ?? {};
  return Object.hasOwn(labels, key) ? String(labels[key]) : undefined;
}

function fieldOf(object: JsonObject, field: string): string {
  // An event's source is an object; the selector uses its component.
  const value = getPath(object, field === "source" ? "source.component" : field);
  return value === undefined || value === null ? "" : String(value);
}
