import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";

const CEL_FIX =
  'write the rule in CEL with .check(rule("self.min <= self.max", "min must not exceed max"))';
const CHANGE_FIX =
  "objects are used as the API server stores them; describe the stored type and convert the value in the handler";
/** Longest wait for the next millisecond, in ms. */
const MAX_TICK_MS = 5;

/** The parts of a zod definition that the walk reads. */
interface Def {
  readonly type: string;
  readonly checks?: readonly { readonly _zod: { readonly def: { readonly check: string } } }[];
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
  readonly catchall?: z.core.$ZodType;
  readonly element?: z.core.$ZodType;
  readonly innerType?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly keyType?: z.core.$ZodType;
  readonly left?: z.core.$ZodType;
  readonly right?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
  readonly getter?: () => z.core.$ZodType;
  readonly defaultValue?: unknown;
}

/**
 * Returns the first field with a rule that a CRD cannot contain, with the suggested fix; undefined if there is none. Such a
 * rule would never run, because objects are not parsed by the schema.
 */
export function findLostRule(schema: z.core.$ZodType, path: string): string | undefined {
  return new RuleSearch().find(schema, path);
}

class RuleSearch {
  readonly #seen = new Set<z.core.$ZodType>();

  find(schema: z.core.$ZodType, path: string): string | undefined {
    if (this.#seen.has(schema)) return undefined;
    this.#seen.add(schema);
    const def = schema._zod.def as unknown as Def;
    const own = ownIssue(def);
    if (own !== undefined) return `${path} ${own}`;
    for (const [inner, place] of partsOf(def, path)) {
      const issue = this.find(inner, place);
      if (issue !== undefined) return issue;
    }
    return undefined;
  }
}

function ownIssue(def: Def): string | undefined {
  switch (def.type) {
    case "transform":
    case "pipe":
      return `has a transform, preprocess, codec or pipe, which nothing would run: ${CHANGE_FIX}`;
    case "catch":
      return `has a catch, which nothing would run: the API server rejects invalid values; use a default`;
    case "custom":
      return `is a custom type, which the API server cannot check; describe it with z.object, z.string or another type, and ${CEL_FIX}`;
    case "default":
    case "prefault":
      if (!isConstant(def)) {
        return "has a default that differs from call to call, but a CRD stores one value; use a constant, or set the field in the handler";
      }
      break;
  }
  for (const { _zod } of def.checks ?? []) {
    if (_zod.def.check === "custom") {
      return `has a refine, superRefine or check, which the API server cannot run; ${CEL_FIX}`;
    }
    if (_zod.def.check === "overwrite") {
      return `changes its value (trim, toLowerCase or another overwrite), which nothing would do: ${CHANGE_FIX}`;
    }
  }
  return undefined;
}

/** Calls the default in two milliseconds, because a default function is not visible from outside. */
function isConstant(def: Def): boolean {
  const first = def.defaultValue;
  const beganMs = Date.now();
  const untilMs = performance.now() + MAX_TICK_MS;
  while (Date.now() === beganMs && performance.now() < untilMs) {
    // Wait for the next millisecond.
  }
  return isDeepStrictEqual(first, def.defaultValue);
}

function partsOf(def: Def, path: string): [z.core.$ZodType, string][] {
  const parts: [z.core.$ZodType | undefined, string][] = [
    ...Object.entries(def.shape ?? {}).map(([name, field]): [z.core.$ZodType, string] => [
      field,
      `${path}.${name}`,
    ]),
    [def.catchall, `${path}.*`],
    [def.getter?.(), path],
    [def.element, `${path}[]`],
    [def.keyType, `${path}.*`],
    [def.valueType, `${path}.*`],
    ...[def.innerType, def.left, def.right, ...(def.options ?? [])].map(
      (inner): [z.core.$ZodType | undefined, string] => [inner, path],
    ),
  ];
  return parts.flatMap(([inner, place]) => (inner === undefined ? [] : [[inner, place]]));
}
