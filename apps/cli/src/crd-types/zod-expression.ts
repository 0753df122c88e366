import { compilePattern } from "@konverge/apiserver/schema";
import { isJsonObject, jsonEquals, type JsonValue } from "@konverge/core";
import type { CrdSchema } from "./crd-schema.ts";
import { docstring, paragraphsOf } from "./docstring.ts";
import { keyOf, literalOf } from "./literal.ts";
import { keepsUnknown } from "./schema-type.ts";

const WIDTH = 100;
const STEP = "  ";

/** An expression, and the keywords of the schema that it expresses. */
interface Base {
  readonly text: string;
  readonly expressed: readonly (keyof CrdSchema)[];
}

/** Keywords that `keywords` of the package takes, in the order of the file. */
const KEYWORDS = [
  ..."format pattern enum minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum".split(
    " ",
  ),
  ..."multipleOf minItems maxItems minProperties maxProperties".split(" "),
  ..."allOf anyOf oneOf not x-kubernetes-list-type x-kubernetes-list-map-keys".split(" "),
  ..."x-kubernetes-map-type x-kubernetes-embedded-resource".split(" "),
] as (keyof CrdSchema)[];

const EMBEDDED = ["apiVersion", "kind", "metadata"];
const INT_OR_STRING: JsonValue = [{ type: "integer" }, { type: "string" }];

/** Returns a zod schema for a schema of a CRD, with its default, as an expression. */
export function zodOf(schema: CrdSchema, indent: string): string {
  const { text, expressed } = baseOf(schema, indent);
  const checks = checksOf(schema, expressed, indent);
  const nullable = acceptsNull(schema) && text !== "z.unknown()" ? ".nullable()" : "";
  return `${text}${checks}${nullable}${defaultOf(schema, indent)}`;
}

/** The API server rejects null for a value that has an enum, even if the enum lists null. */
const acceptsNull = ({ nullable = false, enum: values }: CrdSchema): boolean =>
  nullable && values === undefined;

/** Returns the members of `z.object`, without those in `known`. */
function shapeOf(
  schema: CrdSchema,
  indent: string,
  known: readonly string[] = [],
): readonly string[] {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !known.includes(name))
    .map(([name, property]) => {
      const optional = isOptional(property, required.includes(name)) ? ".optional()" : "";
      const comment = docstring(commentOf(property), indent);
      return `${comment}${indent}${keyOf(name)}: ${zodOf(property, indent)}${optional},`;
    });
}

/** The paragraphs of a field's comment: its description, and a pattern that only the API server can check. */
export function commentOf(schema: CrdSchema): string[] {
  const { pattern } = schema;
  return [
    ...paragraphsOf(schema.description),
    ...(pattern === undefined || compiles(pattern)
      ? []
      : [`Pattern, which only the API server checks: ${pattern}`]),
  ];
}

/** A field with a default is never missing: the API server sets it. */
export const isOptional = (schema: CrdSchema, isRequired: boolean): boolean =>
  schema.default === undefined && !isRequired;

/** Returns the checks of keywords that zod has no method for, and of rules in CEL. */
export function checksOf(
  schema: CrdSchema,
  expressed: readonly (keyof CrdSchema)[],
  indent: string,
): string {
  const left = KEYWORDS.filter((key) => schema[key] !== undefined && !expressed.includes(key));
  const checked = left.filter((key) => key !== "pattern" || compiles(schema.pattern ?? ""));
  const added = Object.fromEntries(checked.map((key) => [key, schema[key] as JsonValue]));
  const inner = `${indent}${STEP}`;
  const checks = [
    ...(checked.length === 0 ? [] : [(at: string) => `keywords(${literalOf(added, at)})`]),
    ...(schema["x-kubernetes-validations"] ?? []).map(({ rule, ...options }) => (at: string) => {
      const rest = Object.keys(options).length === 0 ? "" : `, ${literalOf({ ...options }, at)}`;
      return `rule(${JSON.stringify(rule)}${rest})`;
    }),
  ];
  if (checks.length === 0) return "";
  const line = checks.map((check) => check(indent)).join(", ");
  if (checks.length === 1 && (line.includes("\n") || line.length + indent.length <= WIDTH / 2)) {
    return `.check(${line})`;
  }
  return `.check(${checks.map((check) => `\n${inner}${check(inner)},`).join("")}\n${indent})`;
}

/** A default that is an object or a list gets the defaults of its own fields, as on the API server. */
function defaultOf({ default: value }: CrdSchema, indent: string): string {
  if (value === undefined) return "";
  const method = isJsonObject(value) || Array.isArray(value) ? "prefault" : "default";
  return `.${method}(${literalOf(value, indent)})`;
}

function baseOf(schema: CrdSchema, indent: string): Base {
  if (schema["x-kubernetes-int-or-string"] === true) {
    const isPair = jsonEquals(schema.anyOf ?? [], INT_OR_STRING);
    return { text: "z.union([z.int(), z.string()])", expressed: isPair ? ["anyOf"] : [] };
  }
  switch (schema.type) {
    case "string":
      return stringOf(schema, indent);
    case "boolean":
      return { text: "z.boolean()", expressed: [] };
    case "integer":
      return numberOf("z.int()", schema);
    case "number":
      return numberOf("z.number()", schema);
    case "array": {
      const items = zodOf(schema.items ?? {}, indent);
      const { text, expressed } = limitsOf(`z.array(${items})`, schema, "minItems", "maxItems");
      return { text, expressed };
    }
    case "object":
      return { text: objectOf(schema, indent), expressed: [] };
    default:
      return { text: "z.unknown()", expressed: [] };
  }
}

function stringOf(schema: CrdSchema, indent: string): Base {
  const { enum: values = [], pattern } = schema;
  const texts = values.filter((value) => typeof value === "string");
  if (texts.length > 0 && values.every((value) => typeof value === "string" || value === null)) {
    return { text: `z.enum(${literalOf(texts, indent)})`, expressed: ["enum"] };
  }
  const { text, expressed } = limitsOf("z.string()", schema, "minLength", "maxLength");
  const expression = pattern === undefined ? undefined : plainExpression(pattern);
  if (expression === undefined) return { text, expressed };
  return { text: `${text}.regex(${expression})`, expressed: [...expressed, "pattern"] };
}

function numberOf(start: string, schema: CrdSchema): Base {
  const { minimum, maximum, multipleOf, exclusiveMinimum, exclusiveMaximum } = schema;
  let text = start;
  if (minimum !== undefined) text += `.${exclusiveMinimum === true ? "gt" : "min"}(${minimum})`;
  if (maximum !== undefined) text += `.${exclusiveMaximum === true ? "lt" : "max"}(${maximum})`;
  if (multipleOf !== undefined) text += `.multipleOf(${multipleOf})`;
  return {
    text,
    expressed: ["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"],
  };
}

function limitsOf(
  start: string,
  schema: CrdSchema,
  low: "minLength" | "minItems",
  high: "maxLength" | "maxItems",
): Base {
  const { [low]: min, [high]: max } = schema;
  const text = `${start}${min === undefined ? "" : `.min(${min})`}${max === undefined ? "" : `.max(${max})`}`;
  return { text, expressed: [low, high] };
}

function objectOf(schema: CrdSchema, indent: string): string {
  const { additionalProperties: values = false, properties = {} } = schema;
  const inner = `${indent}${STEP}`;
  const method = keepsUnknown(schema) ? "looseObject" : "object";
  if (schema["x-kubernetes-embedded-resource"] === true) {
    return block(method, [...embeddedShape(inner), ...shapeOf(schema, inner, EMBEDDED)], indent);
  }
  if (Object.keys(properties).length > 0) return block(method, shapeOf(schema, inner), indent);
  if (typeof values === "object") return `z.record(z.string(), ${zodOf(values, indent)})`;
  // The API server removes all fields of an object without any.
  return keepsUnknown(schema) ? "z.record(z.string(), z.unknown())" : "z.object({})";
}

const embeddedShape = (indent: string): string[] => [
  `${indent}apiVersion: z.string().min(1),`,
  `${indent}kind: z.string().min(1),`,
  `${indent}metadata: z.looseObject({}).optional(),`,
];

export function block(method: string, members: readonly string[], indent: string): string {
  return members.length === 0
    ? `z.${method}({})`
    : `z.${method}({\n${members.join("\n")}\n${indent}})`;
}

/** Groups with flags or names, classes and escapes that JavaScript lacks or reads differently. */
const NOT_IN_JAVASCRIPT =
  /\(\?(?!:)|\[:|\\(?:[^A-Za-z0-9^$\\.*+?()[\]{}|/]|(?![bBdDfnrsStvwW])[A-Za-z])/;

/** Returns a literal of a regular expression that means the same in Go and JavaScript; undefined if there is none. */
function plainExpression(pattern: string): string | undefined {
  if (pattern === "" || !compiles(pattern)) return undefined;
  if (NOT_IN_JAVASCRIPT.test(pattern.replaceAll("\\\\", ""))) return undefined;
  // Without the flag u, JavaScript takes a lone brace or bracket and a range such as `[\w-.]` literally, like Go.
  return regexOf(pattern, "u") ?? regexOf(pattern, "");
}

function regexOf(pattern: string, flags: string): string | undefined {
  try {
    return new RegExp(pattern, flags).source === pattern ? `/${pattern}/${flags}` : undefined;
  } catch {
    return undefined;
  }
}

function compiles(pattern: string): boolean {
  try {
    compilePattern(pattern);
    return true;
  } catch {
    return false;
  }
}
