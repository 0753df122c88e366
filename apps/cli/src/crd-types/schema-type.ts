import type { CrdSchema } from "./crd-schema.ts";
import { docstring, paragraphsOf } from "./docstring.ts";
import { keyOf } from "./literal.ts";

const WIDTH = 100;
const STEP = "  ";
const EMBEDDED = ["apiVersion", "kind", "metadata"];

/** Where a type is written. */
interface Place {
  /** Of the line that the type starts in. */
  readonly indent: string;
  /** Characters of this line around the type. */
  readonly used: number;
}

/** Returns the members of an object type, a line each, without those in `known`. */
export function membersOf(
  schema: CrdSchema,
  indent: string,
  known: readonly string[] = [],
): string[] {
  const required = schema.required ?? [];
  const members = Object.entries(schema.properties ?? {})
    .filter(([name]) => !known.includes(name))
    .map(([name, property]) => memberOf(name, property, required.includes(name), indent));
  if (!keepsUnknown(schema)) return members;
  return [...members, `${indent}[field: string]: unknown;`];
}

function memberOf(name: string, schema: CrdSchema, isRequired: boolean, indent: string): string {
  const start = `${indent}${keyOf(name)}${isRequired ? "" : "?"}:`;
  const type = typeOf(schema, { indent, used: `${start} ;`.length });
  const paragraphs = [
    ...paragraphsOf(schema.description),
    ...(schema.default === undefined ? [] : [`Default: ${JSON.stringify(schema.default)}`]),
  ];
  return `${docstring(paragraphs, indent)}${start}${type.startsWith("\n") ? "" : " "}${type};`;
}

/** Returns the type of the values that the schema allows. It starts with a line break if it does not fit the line. */
function typeOf(schema: CrdSchema, place: Place): string {
  const parts = alternativesOf(schema, place);
  return parts.length === 1 ? parts.join("") : unionOf(parts, place);
}

function unionOf(parts: readonly string[], { indent, used }: Place): string {
  const line = parts.join(" | ");
  if (line.includes("\n") || used + line.length <= WIDTH) return line;
  return parts.map((part) => `\n${indent}${STEP}| ${part}`).join("");
}

function alternativesOf(schema: CrdSchema, place: Place): string[] {
  const { nullable = false, enum: direct, allOf = [] } = schema;
  // The API server rejects null for a value that has an enum, even if the enum lists null. It is not in `allOf` either,
  // which does not apply to null.
  const values = (direct ?? allOf.find((one) => one.enum !== undefined)?.enum ?? [])
    .filter((value) => value !== null)
    .map((value) => JSON.stringify(value));
  const isPlain = schema.type !== "object" && schema.type !== "array";
  const parts = isPlain && values.length > 0 ? [...new Set(values)] : plainTypesOf(schema, place);
  const isNullable = nullable && direct === undefined && !parts.includes("unknown");
  return isNullable ? [...parts, "null"] : parts;
}

function plainTypesOf(schema: CrdSchema, place: Place): string[] {
  if (schema["x-kubernetes-int-or-string"] === true) return ["number", "string"];
  switch (schema.type) {
    case "string":
    case "boolean":
      return [schema.type];
    case "integer":
    case "number":
      return ["number"];
    case "array":
      return [arrayOf(schema.items ?? {}, place)];
    case "object":
      return [objectOf(schema, place)];
    default:
      return ["unknown"];
  }
}

function arrayOf(items: CrdSchema, { indent, used }: Place): string {
  const parts = alternativesOf(items, { indent, used: used + "[]".length });
  if (parts.length === 1) return `${parts.join("")}[]`;
  const union = unionOf(parts, { indent, used: used + "()[]".length });
  return union.startsWith("\n") ? `(${union}\n${indent})[]` : `(${union})[]`;
}

function objectOf(schema: CrdSchema, { indent, used }: Place): string {
  const inner = `${indent}${STEP}`;
  if (schema["x-kubernetes-embedded-resource"] === true) {
    const members = membersOf(schema, inner, EMBEDDED);
    return block([...embeddedMembers(inner), ...members], indent);
  }
  const { additionalProperties: values = false } = schema;
  const hasFields = Object.keys(schema.properties ?? {}).length > 0;
  if (values !== false && !hasFields) return mapOf(values === true ? {} : values, indent, used);
  if (hasFields) return block(membersOf(schema, inner), indent);
  // The API server removes all fields of an object without any.
  return `{ [key: string]: ${keepsUnknown(schema) ? "unknown" : "never"} }`;
}

function mapOf(values: CrdSchema, indent: string, used: number): string {
  const start = "[key: string]:";
  const short = typeOf(values, { indent, used: used + `{ ${start}  }`.length });
  const line = `{ ${start} ${short} }`;
  if (!short.includes("\n") && used + line.length <= WIDTH) return line;
  const inner = `${indent}${STEP}`;
  const type = typeOf(values, { indent: inner, used: `${inner}${start} ;`.length });
  return block([`${inner}${start}${type.startsWith("\n") ? "" : " "}${type};`], indent);
}

export const keepsUnknown = (schema: CrdSchema): boolean =>
  schema["x-kubernetes-preserve-unknown-fields"] === true || schema.additionalProperties === true;

const embeddedMembers = (indent: string): string[] => [
  `${indent}apiVersion: string;`,
  `${indent}kind: string;`,
  `${indent}metadata?: Partial<ApiObject["metadata"]>;`,
];

function block(members: readonly string[], indent: string): string {
  return `{\n${members.join("\n")}\n${indent}}`;
}
