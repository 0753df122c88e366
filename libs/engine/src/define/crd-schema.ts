import { isJsonObject, KonvergeError, type JsonObject } from "@konverge/core";
import { z } from "zod";
import { findLostRule } from "./lost-rule.ts";
import { listTypeIssue } from "./list-type.ts";
import { keywordsOf } from "./schema-keywords.ts";

/**
 * The keywords of zod's output that JSONSchemaProps allows; the API server rejects others. It also rejects
 * `additionalProperties: false` together with properties, which is not needed because unknown fields are pruned.
 */
const KNOWN = new Set([
  ..."type format title description default nullable enum pattern required properties items".split(
    " ",
  ),
  ..."additionalProperties propertyNames anyOf oneOf allOf not".split(" "),
  ..."minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split(" "),
  ..."minLength maxLength minItems maxItems uniqueItems minProperties maxProperties".split(" "),
]);
const LOOK_AROUND = /\(\?(?:[=!]|<[=!])/;
const HOISTED = ["anyOf", "oneOf", "allOf"] as const;

/**
 * Converts a zod schema to a structural OpenAPI schema for a CustomResourceDefinition.
 * `io: "input"`, because writers of an object may omit a field with a default.
 * @throws KonvergeError `invalid_config` with the field, for schemas that a CRD cannot express: dates, bigints, sets, maps,
 * tuples, recursion, patterns that Go cannot compile, and rules that run only when zod parses a value.
 */
export function toStructuralSchema(schema: z.ZodType, path: string): JsonObject {
  const lost = findLostRule(schema, path);
  if (lost !== undefined) throw new KonvergeError("invalid_config", lost);
  let printed: unknown;
  try {
    printed = z.toJSONSchema(schema, {
      target: "openapi-3.0",
      io: "input",
      reused: "inline",
      cycles: "throw",
      override: ({ zodSchema }) => {
        // In OpenAPI 3.0 a tuple would become a list of a union, which is a different type.
        if (zodSchema._zod.def.type === "tuple")
          throw new TypeError("tuples cannot be represented");
      },
    });
  } catch (error) {
    throw new KonvergeError(
      "invalid_config",
      `${path} cannot be expressed in a CRD: ${error instanceof Error ? error.message : String(error)}; use strings, numbers, booleans, arrays, objects or records`,
      { cause: error },
    );
  }
  return rewrite(printed as JsonObject, path, isJsonObject(printed) ? definitionsOf(printed) : {});
}

/** Makes every field optional at every depth, so that a partial status is not rejected with 422. */
export function withoutRequired(schema: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "required") continue;
    if (key === "properties" && isJsonObject(value)) {
      const properties: JsonObject = {};
      for (const [name, property] of Object.entries(value)) {
        properties[name] = isJsonObject(property) ? withoutRequired(property) : property;
      }
      result[key] = properties;
    } else {
      // Items of a keyed list keep `required`: the API server rejects map keys that are neither required nor defaulted.
      result[key] = value;
    }
  }
  return result;
}

function definitionsOf(schema: JsonObject): JsonObject {
  const definitions = schema["definitions"] ?? schema["$defs"];
  return isJsonObject(definitions) ? definitions : {};
}

function rewrite(schema: JsonObject, path: string, definitions: JsonObject): JsonObject {
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const target = definitions[reference.slice(reference.lastIndexOf("/") + 1)];
    if (!isJsonObject(target))
      throw refuse(path, `refers to ${reference}, which cannot be inlined`);
    const { $ref: _dropped, ...beside } = schema;
    return rewrite({ ...target, ...beside }, path, definitions);
  }
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (KNOWN.has(key) || key.startsWith("x-kubernetes-")) result[key] = value;
  }
  checkPattern(result, path);
  rewriteObject(result, path, definitions);
  const items = result["items"];
  if (Array.isArray(items))
    throw refuse(path, "is a tuple; use an array of one type, or an object");
  if (isJsonObject(items)) result["items"] = rewrite(items, `${path}[]`, definitions);
  hoistTypes(result, path, definitions);
  acceptNull(result);
  if (
    Object.keys(result).every(
      (key) => key === "description" || key === "nullable" || key === "default",
    )
  ) {
    result["x-kubernetes-preserve-unknown-fields"] = true;
  }
  Object.assign(result, keywordsOf(schema));
  const issue = listTypeIssue(result);
  if (issue !== undefined) throw refuse(path, issue);
  return result;
}

function rewriteObject(schema: JsonObject, path: string, definitions: JsonObject): void {
  const properties = schema["properties"];
  const additional = schema["additionalProperties"];
  if (isJsonObject(properties)) {
    const rewritten: JsonObject = {};
    for (const [name, property] of Object.entries(properties)) {
      if (isJsonObject(property))
        rewritten[name] = rewrite(property, `${path}.${name}`, definitions);
    }
    schema["properties"] = rewritten;
    delete schema["additionalProperties"];
    if (additional !== undefined && additional !== false) {
      schema["x-kubernetes-preserve-unknown-fields"] = true;
    }
    return;
  }
  if (additional === false) delete schema["additionalProperties"];
  else if (isJsonObject(additional) && Object.keys(additional).length > 0) {
    schema["additionalProperties"] = rewrite(additional, `${path}.*`, definitions);
  } else if (additional !== undefined) {
    delete schema["additionalProperties"];
    schema["x-kubernetes-preserve-unknown-fields"] = true;
  }
  delete schema["propertyNames"];
}

/** A structural schema has its type outside anyOf, oneOf and allOf. A union of integer and string becomes int-or-string. */
function hoistTypes(schema: JsonObject, path: string, definitions: JsonObject): void {
  for (const junctor of HOISTED) {
    const branches = schema[junctor];
    if (!Array.isArray(branches)) continue;
    const rewritten = branches.map((branch) =>
      isJsonObject(branch) ? rewrite(branch, path, definitions) : {},
    );
    const types = new Set(rewritten.map((branch) => branch["type"]));
    const names = [...types].map(String).toSorted().join("|");
    if (types.size === 1 && typeof rewritten[0]?.["type"] === "string") {
      schema["type"] = rewritten[0]["type"];
      mergeBranches(schema, junctor, rewritten, path);
    } else if (names === "integer|string") {
      delete schema[junctor];
      schema["x-kubernetes-int-or-string"] = true;
    } else {
      throw refuse(
        path,
        `is a union of ${names}; a CRD field has one type (integer or string excepted)`,
      );
    }
  }
}

/**
 * Moves the enum of a nullable value into `allOf`, which does not apply to null. The API server rejects null for a value
 * that has an enum, even if the enum lists null.
 */
function acceptNull(schema: JsonObject): void {
  const { enum: values, nullable, allOf } = schema;
  if (nullable !== true || !Array.isArray(values)) return;
  delete schema["enum"];
  const rule = { enum: values.filter((value) => value !== null) };
  schema["allOf"] = [...(Array.isArray(allOf) ? allOf : []), rule];
}

function mergeBranches(
  schema: JsonObject,
  junctor: string,
  branches: JsonObject[],
  path: string,
): void {
  delete schema[junctor];
  if (schema["type"] === "object") {
    const properties: JsonObject = isJsonObject(schema["properties"]) ? schema["properties"] : {};
    for (const branch of branches) Object.assign(properties, branch["properties"] ?? {});
    schema["properties"] = properties;
    return;
  }
  const values = branches.map((branch) => branch["enum"]);
  if (values.every((value) => Array.isArray(value))) {
    schema["enum"] = [...new Set(values.flat())];
    return;
  }
  if (junctor === "allOf") {
    for (const branch of branches) Object.assign(schema, branch);
    return;
  }
  throw refuse(path, "is a union of the same type with different rules; use one rule, or an enum");
}

function checkPattern(schema: JsonObject, path: string): void {
  const pattern = schema["pattern"];
  if (typeof pattern === "string" && LOOK_AROUND.test(pattern)) {
    throw refuse(
      path,
      `has the pattern ${pattern}, with look-around, which the API server cannot compile`,
    );
  }
}

function refuse(path: string, what: string): KonvergeError {
  return new KonvergeError("invalid_config", `${path} ${what}`);
}
