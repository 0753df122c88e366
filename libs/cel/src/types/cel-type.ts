/** The type of a CEL expression. */
export type CelType =
  | { readonly kind: SimpleKind }
  | { readonly kind: "list"; readonly element: CelType }
  | { readonly kind: "map"; readonly key: CelType; readonly value: CelType }
  | ObjectType
  | { readonly kind: "opaque"; readonly name: string; readonly parameters: readonly CelType[] }
  | { readonly kind: "type"; readonly of?: CelType }
  | { readonly kind: "variable"; readonly name: string };

type SimpleKind =
  | "bool"
  | "bytes"
  | "double"
  | "duration"
  | "dyn"
  | "error"
  | "int"
  | "null"
  | "string"
  | "timestamp"
  | "uint";

/** An object with declared fields, by their escaped names. */
interface ObjectType {
  readonly kind: "object";
  readonly name: string;
  readonly fields: ReadonlyMap<string, CelType>;
}

const SIMPLE_KINDS: readonly SimpleKind[] = [
  "bool",
  "bytes",
  "double",
  "duration",
  "dyn",
  "int",
  "string",
  "timestamp",
  "uint",
];

export const BOOL: CelType = { kind: "bool" };
export const DYN: CelType = { kind: "dyn" };
export const ERROR: CelType = { kind: "error" };
export const INT: CelType = { kind: "int" };
export const NULL: CelType = { kind: "null" };
export const STRING: CelType = { kind: "string" };

export const listOf = (element: CelType): CelType => ({ kind: "list", element });

export const mapOf = (key: CelType, value: CelType): CelType => ({ kind: "map", key, value });

export const optionalOf = (value: CelType): CelType => ({
  kind: "opaque",
  name: "optional_type",
  parameters: [value],
});

/** Returns the type inside an optional, or undefined if the type is not one. */
export const valueOfOptional = (type: CelType): CelType | undefined =>
  type.kind === "opaque" && type.name === "optional_type" ? type.parameters[0] : undefined;

export const isDynOrError = ({ kind }: CelType): boolean => kind === "dyn" || kind === "error";

/** Changes the types inside a type, such as the element of a list. Fields of objects stay. */
export function mapParts(type: CelType, change: (part: CelType) => CelType): CelType {
  switch (type.kind) {
    case "list":
      return listOf(change(type.element));
    case "map":
      return mapOf(change(type.key), change(type.value));
    case "opaque":
      return { ...type, parameters: type.parameters.map(change) };
    case "type":
      return type.of === undefined ? type : { kind: "type", of: change(type.of) };
    default:
      return type;
  }
}

/** Formats a type as cel-go does in its errors. */
export function formatType(type: CelType): string {
  switch (type.kind) {
    case "list":
      return `list(${formatType(type.element)})`;
    case "map":
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case "object":
      return type.name;
    case "opaque":
      return type.parameters.length === 0
        ? type.name
        : `${type.name}(${type.parameters.map(formatType).join(", ")})`;
    case "type":
      return type.of === undefined ? "type" : `type(${formatType(type.of)})`;
    case "variable":
      return type.name;
    case "error":
      return "!error!";
    default:
      return type.kind;
  }
}

const RUNTIME_NAMES: Readonly<Partial<Record<CelType["kind"], string>>> = {
  duration: "google.protobuf.Duration",
  null: "null_type",
  timestamp: "google.protobuf.Timestamp",
};

/** Returns the name of a type without its parameters, as for a value of it. */
export function typeNameOfType(type: CelType): string {
  if (type.kind === "object" || type.kind === "opaque") return type.name;
  return RUNTIME_NAMES[type.kind] ?? type.kind;
}

/** Parses a type as written in signatures, for example `map(A, list(int))`. Single capitals are variables. */
export function parseType(text: string): CelType {
  const trimmed = text.trim();
  const simple = SIMPLE_KINDS.find((kind) => kind === trimmed);
  if (simple !== undefined) return { kind: simple };
  if (/^[A-Z]$/.test(trimmed)) return { kind: "variable", name: trimmed };
  const [, name = trimmed, inner] = /^(\w+)\((.*)\)$/.exec(trimmed) ?? [];
  const parameters = inner === undefined ? [] : splitTypes(inner).map(parseType);
  const [first, second] = parameters;
  if (name === "list" && first !== undefined) return listOf(first);
  if (name === "map" && first !== undefined && second !== undefined) return mapOf(first, second);
  if (name === "optional" && first !== undefined) return optionalOf(first);
  if (name === "type") return first === undefined ? { kind: "type" } : { kind: "type", of: first };
  return { kind: "opaque", name, parameters };
}

/** Splits at commas outside of parentheses. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let current = "";
  for (const character of text) {
    if (character === "," && depth === 0) {
      parts.push(current);
      current = "";
      continue;
    }
    if (character === "(") depth++;
    if (character === ")") depth--;
    current += character;
  }
  return current.trim() === "" ? parts : [...parts, current];
}
