import { defined, isJsonObject, KonvergeError, type JsonObject } from "@konverge/core";

/** A column of `kubectl get`. */
export interface PrinterColumn {
  /** Heading, for example `Replicas`. */
  readonly name: string;
  /** From the object, in kubectl's JSONPath: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`. */
  readonly path: string;
  /** Default: from the schema of the field; `string` if the path has a filter. */
  readonly type?: "string" | "integer" | "number" | "boolean" | "date";
  /** Description of the column in the CRD. */
  readonly description?: string;
  /** 0 (default) is always shown; higher values only with `-o wide`. */
  readonly priority?: number;
}

/** The schema of common metadata fields. */
const METADATA: JsonObject = {
  type: "object",
  properties: {
    name: { type: "string" },
    namespace: { type: "string" },
    generation: { type: "integer" },
    creationTimestamp: { type: "string", format: "date-time" },
    deletionTimestamp: { type: "string", format: "date-time" },
    labels: { type: "object", additionalProperties: { type: "string" } },
    annotations: { type: "object", additionalProperties: { type: "string" } },
  },
};

/** Returns the column for the CRD. @throws KonvergeError `invalid_config` for a path that is not in the schema */
export function toColumn(column: PrinterColumn, schema: JsonObject, kind: string): JsonObject {
  const { name, path, type, description, priority } = column;
  return {
    name,
    jsonPath: path,
    type: type ?? typeAt(column, schema, kind),
    ...defined({ description, priority }),
  };
}

function typeAt({ name, path }: PrinterColumn, schema: JsonObject, kind: string): string {
  const refuse = (why: string) =>
    new KonvergeError("invalid_config", `${kind}: printer column "${name}": ${why}`);
  if (!path.startsWith(".")) throw refuse(`path "${path}" must start with a dot: .spec.replicas`);
  if (/[[\\]/.test(path)) return "string";
  let at: JsonObject = schema;
  for (const field of path.slice(1).split(".")) {
    const inMetadata = field === "metadata" && at === schema;
    const next = inMetadata ? METADATA : memberOf(at, field);
    if (next === undefined) throw refuse(`the schema has no ${path}`);
    at = next;
  }
  if (at["format"] === "date-time") return "date";
  const type = at["type"];
  if (type === "integer" || type === "number" || type === "boolean" || type === "string") {
    return type;
  }
  if (at["x-kubernetes-int-or-string"] === true) return "string";
  throw refuse(`${path} is not a single value; use one of its fields`);
}

function memberOf(schema: JsonObject, field: string): JsonObject | undefined {
  const { properties, additionalProperties } = schema;
  const member = isJsonObject(properties) ? properties[field] : additionalProperties;
  return isJsonObject(member) ? member : undefined;
}
