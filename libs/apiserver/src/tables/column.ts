import type { JsonObject, JsonValue } from "@konverge/core";
import { metadataOf, objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import { humanDuration } from "./human-duration.ts";

/** One column of a table: what kubectl prints for each object. */
export interface Column {
  readonly name: string;
  readonly type: "boolean" | "date" | "integer" | "number" | "string";
  readonly format?: string;
  readonly description?: string;
  /** 1: only in wide output. */
  readonly priority: number;
  readonly cell: (object: JsonObject, nowMs: number) => JsonValue;
}

type Cell = Column["cell"];

export const text = (name: string, cell: Cell, priority = 0): Column => ({
  name,
  type: "string",
  priority,
  cell,
});

export const wide = (name: string, cell: Cell): Column => text(name, cell, 1);

export const integer = (name: string, cell: Cell): Column => ({
  ...text(name, cell),
  type: "integer",
});

export const NAME: Column = {
  ...text("Name", (object) => textOf(metadataOf(object), "name")),
  format: "name",
};

export const AGE: Column = text("Age", (object, nowMs) =>
  since(textOf(metadataOf(object), "creationTimestamp"), nowMs),
);

export const CREATED_AT: Column = {
  ...text("Created At", (object) => textOf(metadataOf(object), "creationTimestamp")),
  type: "date",
};

/** The time since a timestamp. */
export const since = (timestamp: string, nowMs: number): string =>
  timestamp === "" ? "<unknown>" : humanDuration(nowMs - Date.parse(timestamp));

export const specOf = (object: JsonObject): JsonObject => objectOf(object, "spec") ?? {};
export const statusOf = (object: JsonObject): JsonObject => objectOf(object, "status") ?? {};
export const numberIn = (object: JsonObject, member: string): number => Number(object[member] ?? 0);
export const orNone = (value: string): string => (value === "" ? "<none>" : value);

/** Containers, images and selector of a workload. */
export const workloadColumns = (templateOf: (object: JsonObject) => JsonObject): Column[] => {
  const containers = (object: JsonObject) =>
    objectsOf(objectOf(templateOf(object), "spec") ?? {}, "containers");
  const listed = (member: string) => (object: JsonObject) =>
    containers(object)
      .map((container) => textOf(container, member))
      .join(",");
  return [wide("Containers", listed("name")), wide("Images", listed("image"))];
};

/** Formats a LabelSelector. */
export function formatSelector(selector: JsonObject | undefined): string {
  if (selector === undefined) return "<none>";
  const labels = Object.entries(objectOf(selector, "matchLabels") ?? {})
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${String(value)}`);
  const expressions = objectsOf(selector, "matchExpressions").map(formatExpression);
  return orNone([...labels, ...expressions].join(","));
}

function formatExpression(expression: JsonObject): string {
  const key = textOf(expression, "key");
  const values = Array.isArray(expression["values"]) ? expression["values"].join(",") : "";
  switch (expression["operator"]) {
    case "In":
      return `${key} in (${values})`;
    case "NotIn":
      return `${key} notin (${values})`;
    case "Exists":
      return key;
    default:
      return `!${key}`;
  }
}

/** Formats a map of labels as a selector. */
export const formatLabels = (labels: JsonObject | undefined): string =>
  formatSelector({ matchLabels: labels ?? {} });
