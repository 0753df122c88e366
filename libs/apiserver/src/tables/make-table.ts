import {
  defined,
  formatApiVersion,
  isJsonObject,
  parseJson,
  resourceId,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { metadataOf, objectsOf } from "../objects/metadata.ts";
import { BUILTIN_COLUMNS } from "./builtin-columns.ts";
import { AGE, NAME, since, type Column } from "./column.ts";
import { valuesAt } from "./json-path.ts";

/**
 * Converts an object or a list to the Table that kubectl prints.
 * @param include the part of each object in its row: `None`, `Object` or, by default, its `Metadata`
 */
export function makeTable(
  kind: ResourceKind,
  answer: JsonObject,
  { include, nowMs }: { readonly include: string; readonly nowMs: number },
): JsonObject {
  const isList = Array.isArray(answer["items"]) && answer["kind"] === kind.listKind;
  const objects = isList ? objectsOf(answer, "items") : [answer];
  const columns = columnsOf(kind);
  const { resourceVersion, ...paging } = metadataOf(answer);
  const metadata = isList
    ? { resourceVersion: resourceVersion ?? "", ...paging }
    : { resourceVersion: resourceVersion ?? "" };
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: columns.map(({ name, type, format = "", description = "", priority }) => ({
      name,
      type,
      format,
      description,
      priority,
    })),
    rows: objects.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, nowMs)),
      ...(include === "None" ? {} : { object: rowObject(kind, object, include) }),
    })),
  };
}

/**
 * Converts the lines of a watch to lines whose objects are Tables with one row. Only the first one describes the columns; a
 * bookmark has no row.
 */
export function makeTableLines(
  kind: ResourceKind,
  include: string,
  now: () => number,
): (line: string) => string {
  let isFirst = true;
  return (line) => {
    const { type, object } = parseJson(line) as JsonObject;
    if (!isJsonObject(object) || type === "ERROR") return line;
    const table = makeTable(kind, object, { include, nowMs: now() });
    if (type === "BOOKMARK") table["rows"] = [];
    if (!isFirst) table["columnDefinitions"] = null;
    isFirst = false;
    return `${JSON.stringify({ type, object: table })}\n`;
  };
}

/** The items of a list lack their type, and kubectl sorts only rows that have one. */
function rowObject(kind: ResourceKind, object: JsonObject, include: string): JsonObject {
  if (include === "Object") {
    return { kind: kind.kind, apiVersion: formatApiVersion(kind.group, kind.version), ...object };
  }
  const metadata = metadataOf(object);
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
}

function columnsOf(kind: ResourceKind): readonly Column[] {
  if (!kind.isCustom) return BUILTIN_COLUMNS[resourceId(kind)] ?? [NAME, AGE];
  const { printerColumns } = kind;
  return printerColumns.length === 0 ? [NAME, AGE] : [NAME, ...printerColumns.map(customColumn)];
}

function customColumn(column: ResourceKind["printerColumns"][number]): Column {
  const { name, type, jsonPath, format, description, priority = 0 } = column;
  return {
    name,
    type: type as Column["type"],
    priority,
    ...defined({ format }),
    description:
      description ?? `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    cell: (object, nowMs) => formatCell(valuesAt(object, jsonPath)[0], type, nowMs),
  };
}

/** Only the first value of a path is shown. */
function formatCell(value: JsonValue | undefined, type: string, nowMs: number): JsonValue {
  if (value === undefined) return type === "date" ? "<unknown>" : null;
  if (type === "date") return typeof value === "string" ? since(value, nowMs) : "<invalid>";
  if (type !== "string") return value;
  return isJsonObject(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);
}
