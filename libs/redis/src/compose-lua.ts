import type { ArgumentKind, ScriptSignature } from "./script-signature.ts";

/** Values that Lua and TypeScript share, by the name of the local that holds each. */
type LuaConstants = Readonly<Record<string, number | string | Readonly<Record<string, number>>>>;

/** End of the key that calls on a Redis Cluster add. Lists of items do not include it. */
export const UNMOVED = "/unmoved";

/** Lua text, with the constants and the parts whose locals it uses. */
export interface LuaPart {
  readonly lua: string;
  readonly constants?: LuaConstants;
  readonly include?: readonly LuaPart[];
}

/**
 * Joins a script: locals for its keys, arguments and items, then every included part once, dependencies first.
 * Parts see the names of the signature too.
 */
export function composeLua(signature: ScriptSignature, body: LuaPart): string {
  const texts = [declareInputs(signature)];
  const declared = new Map<string, string>();
  const seen = new Set<LuaPart>();
  const add = (part: LuaPart) => {
    if (seen.has(part)) return;
    seen.add(part);
    part.include?.forEach(add);
    for (const [name, value] of Object.entries(part.constants ?? {})) {
      const literal = luaLiteral(value);
      const known = declared.get(name);
      if (known === literal) continue;
      if (known !== undefined) {
        throw new RangeError(`script ${signature.name}: two values for the constant ${name}`);
      }
      declared.set(name, literal);
      texts.push(`local ${name} = ${literal}`);
    }
    texts.push(part.lua);
  };
  add(body);
  return texts.filter((text) => text !== "").join("\n");
}

function declareInputs({ keys = [], args = {}, each }: ScriptSignature): string {
  const kinds = Object.entries(args);
  const lines = [
    declare(
      keys,
      keys.map((_name, at) => `KEYS[${at + 1}]`),
    ),
    declare(
      Object.keys(args),
      kinds.map(([, kind], at) => readArgument(kind, String(at + 1))),
    ),
  ];
  if (each !== undefined) lines.push(declareItems(each, keys.length, kinds.length));
  return lines.filter((line) => line !== "").join("\n");
}

function declare(names: readonly string[], values: readonly string[]): string {
  return names.length === 0 ? "" : `local ${names.join(", ")} = ${values.join(", ")}`;
}

/** `each`: a table of one table per item. */
function declareItems(
  { keys = [], args = {} }: NonNullable<ScriptSignature["each"]>,
  keysBefore: number,
  argsBefore: number,
): string {
  const kinds = Object.entries(args);
  const place = (width: number, before: number) => `${width} * i + ${before - width}`;
  const fields = [
    ...keys.map((name, at) => `${name} = KEYS[${place(keys.length, keysBefore + at + 1)}]`),
    ...kinds.map(
      ([name, kind], at) =>
        `${name} = ${readArgument(kind, place(kinds.length, argsBefore + at + 1))}`,
    ),
  ];
  const count =
    keys.length > 0
      ? `(#KEYS - ${keysBefore} - (string.sub(KEYS[#KEYS] or '', -${UNMOVED.length}) == '${UNMOVED}' and 1 or 0)) / ${keys.length}`
      : `(#ARGV - ${argsBefore}) / ${kinds.length}`;
  return `local each = {}\nfor i = 1, ${count} do each[i] = { ${fields.join(", ")} } end`;
}

function readArgument(kind: ArgumentKind, place: string): string {
  const value = `ARGV[${place}]`;
  switch (kind) {
    case "text":
      return value;
    case "number":
      return `tonumber(${value})`;
    case "flag":
      return `${value} == '1'`;
  }
}

function luaLiteral(value: LuaConstants[string]): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "string") {
    return `'${value
      .replaceAll("\\", String.raw`\\`)
      .replaceAll("'", String.raw`\'`)
      .replaceAll("\n", String.raw`\n`)}'`;
  }
  const fields = Object.entries(value).map(([name, number]) => `${name} = ${number}`);
  return `{ ${fields.join(", ")} }`;
}
