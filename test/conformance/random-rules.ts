import type { JsonObject, JsonValue } from "@konverge/core";

/** A source of choices that repeats for a seed. */
export class Choices {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0 to below `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  one<T>(from: readonly T[]): T {
    const chosen = from[this.below(from.length)];
    if (chosen === undefined) throw new TypeError("nothing to choose from");
    return chosen;
  }

  happens(percent: number): boolean {
    return this.below(100) < percent;
  }
}

type Type = "bool" | "double" | "int" | "ints" | "map" | "string" | "strings" | "time";
interface Scope {
  readonly choices: Choices;
  readonly depth: number;
  /** Names of variables by type. */
  readonly names: Readonly<Partial<Record<Type, readonly string[]>>>;
  readonly self: "oldSelf" | "self";
}

const short = { type: "string", maxLength: 8 };
/** The object that random rules are about. */
export const ruledSchema: JsonObject = {
  type: "object",
  properties: {
    a: { type: "integer" },
    b: { type: "integer", default: 2 },
    d: { type: "number" },
    s: short,
    n: { ...short, nullable: true },
    t: { type: "string", format: "date-time" },
    p: { "x-kubernetes-int-or-string": true, maxLength: 8 },
    l: { type: "array", maxItems: 4, items: { type: "integer" } },
    set: { type: "array", maxItems: 4, "x-kubernetes-list-type": "set", items: short },
    m: { type: "object", maxProperties: 4, additionalProperties: { type: "integer" } },
    o: { type: "object", properties: { x: short, "y-z": { type: "integer" } } },
    ml: {
      type: "array",
      maxItems: 4,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["k"],
      items: {
        type: "object",
        required: ["k"],
        properties: { k: short, v: { type: "integer" } },
      },
    },
  },
};

const ATOMS: Readonly<Record<Type, readonly string[]>> = {
  bool: [
    "true",
    "false",
    "has(S.a)",
    "has(S.n)",
    "has(S.o.x)",
    "has(S.m.k)",
    "S.p == 1",
    "S.p == 'x'",
  ],
  double: ["1.5", "S.d", "double(S.a)", "0.0", "-2.0"],
  int: [
    "0",
    "1",
    "-3",
    "S.a",
    "S.b",
    "S.l[0]",
    "S.m['k']",
    "S.o.y__dash__z",
    "S.ml[0].v",
    "S.?a.orValue(7)",
  ],
  ints: ["S.l", "[1, 2]", "S.l + [3]", "S.ml.map(i, i.v)", "[]"],
  map: ["S.m", "{'k': 1}"],
  string: ["'x'", "'Ab é'", "S.s", "S.n", "S.o.x", "S.set[0]", "S.ml[0].k", "string(S.p)"],
  strings: ["S.set", "['x', 'y']", "S.ml.map(i, i.k)", "S.set + ['x']"],
  time: ["S.t", "timestamp('2024-02-29T23:59:59Z')"],
};

/**
 * `<int>` stands for an expression of that type, `<any>` for one of any type, `<i:int>` for one in which the item of the
 * loop is known, and `%?` for a clause of a format.
 */
const FORMS: Readonly<Record<Type, readonly string[]>> = {
  bool: [
    "<int> < <int>",
    "<int> == <int>",
    "<int> >= <double>",
    "<double> != <double>",
    "<string> == <string>",
    "<string> <= <string>",
    "<strings> == <strings>",
    "<ints> == <ints>",
    "<map> == <map>",
    "<time> < <time>",
    "<bool> && <bool>",
    "<bool> || <bool>",
    "!(<bool>)",
    "!<bool>",
    "!!<bool>",
    "<bool> ? <bool> : <bool>",
    "<int> in <ints>",
    "<string> in <strings>",
    "<string> in <map>",
    "<ints>.all(i, <i:bool>)",
    "<ints>.exists(i, <i:bool>)",
    "<ints>.exists_one(i, <i:bool>)",
    "<ints>.all(j, i, j <= i || <i:bool>)",
    // Go loops over a map in a random order: the first error must not depend on the key.
    "<map>.exists(k, k == <string>)",
    // Most of these have a range that is none.
    "<any>.exists(k, k == <any>)",
    "<any>.all(j, <bool>)",
    "<any>.exists_one(i, <i:bool>)",
    "<string>.startsWith(<string>)",
    "<string>.contains(<string>)",
    "<string>.matches('^[a-z]+$')",
    "sets.contains(<ints>, <ints>)",
    "<ints>.isSorted()",
    "type(S.p) == int ? S.p > 1 : S.p.size() > <int>",
    "S.p < <int>",
    "S == oldSelf",
    "isQuantity(<string>)",
    "quantity('1Ki').compareTo(quantity('999').add(<int>)) < <int>",
    "isIP(<string>) || cidr('10.1.2.3/8').containsIP(ip('10.1.2.4'))",
    "cidr('10.1.2.3/8').masked().prefixLength() == <int>",
    "isURL(<string>)",
    "isSemver(<string>, true)",
    "semver('1.2.' + string(<int>), <bool>).isLessThan(semver('1.2.2-a'))",
    "format.dns1123Label().validate(<string>).hasValue()",
  ],
  double: ["(<double> + <double>)", "(<double> / <double>)", "double(<int>)", "-<double>"],
  int: [
    "(<int> + <int>)",
    "(<int> - <int>)",
    "(<int> * <int>)",
    "(<int> / <int>)",
    "(<int> % <int>)",
    "<string>.size()",
    "size(<ints>)",
    "<strings>.size()",
    "<ints>.sum()",
    "<ints>.max()",
    "<ints>[<int>]",
    "<string>.indexOf(<string>)",
    "<ints>.indexOf(<int>)",
    "int(<double>)",
    "<time>.getHours('+01:00')",
    "<time>.getDayOfYear()",
    "(<bool> ? <int> : <int>)",
    "int(<string>)",
    "-<int>",
    "--<int>",
    "-<any>.size()",
  ],
  ints: [
    "<ints>.filter(i, <i:bool>)",
    "<ints>.map(i, <i:int>)",
    "<ints>.map(i, <i:bool>, <i:int>)",
    "(<ints> + <ints>)",
    "<ints>.slice(0, <int>)",
    "<ints>.reverse()",
    "<ints>.transformList(j, i, j + i)",
    "<ints>.distinct()",
    "<any>.filter(i, <i:bool>)",
    "<any>.map(i, <i:int>)",
    "-<any>.map(i, <i:bool>, <i:int>)",
  ],
  map: [
    "<ints>.transformMap(j, i, i).transformMapEntry(j, i, {string(j): i})",
    "(<bool> ? <map> : <map>)",
  ],
  string: [
    "(<string> + <string>)",
    "<string>.lowerAscii()",
    "<string>.substring(<int>)",
    "<string>.replace('x', <string>)",
    "<strings>.join(',')",
    "<string>.charAt(<int>)",
    "(<bool> ? <string> : <string>)",
    "'%s-%d'.format([<string>, <int>])",
    "<string>.trim()",
    "<string>.find('[^x]+')",
    "'%.1f %e'.format([<double>, <double>])",
    "'%? %?'.format([<any>, dyn(<any>)])",
    "'%?'.format([[dyn(<any>), <any>]])",
    "url('http://h/' + <string>).getEscapedPath()",
    "format.labelValue().validate(<string>).orValue(['none']).join(';')",
  ],
  strings: [
    "<strings>.filter(x, x != <string>)",
    "<string>.split('x')",
    "(<strings> + <strings>)",
    "<strings>.sort()",
    "<string>.findAll('[a-z]*')",
    "url('/p?' + <string> + '=1&k=' + <string>).getQuery()['k']",
  ],
  time: ["(<time> + duration('1h'))", "(<time> - duration('90m'))"],
};
const TYPES = Object.keys(ATOMS) as readonly Type[];
const CLAUSES = [
  "%s",
  "%s",
  "%d",
  "%f",
  "%.3f",
  "%e",
  "%b",
  "%x",
  "%X",
  "%o",
  "%%",
  "%q",
  "%",
  "%.s",
];
/** How often an expression of another type is used, in percent: most of these rules are rejected. */
const WRONG_TYPES = 2;

/** Writes a random expression of a type. */
function randomExpression(type: Type, scope: Scope): string {
  const { choices, depth, names, self } = scope;
  const actual = choices.happens(WRONG_TYPES) ? choices.one(TYPES) : type;
  const atoms = [...ATOMS[actual], ...(names[actual] ?? [])];
  if (depth === 0 || choices.happens(25)) return choices.one(atoms).replaceAll("S.", `${self}.`);
  const form = choices.one(FORMS[actual]);
  const inner = { ...scope, depth: depth - 1 };
  return form
    .replaceAll(/%\?/g, () => choices.one(CLAUSES))
    .replaceAll(/<(i:)?(\w+)>/g, (_all, item: string | undefined, wanted: Type | "any") =>
      randomExpression(
        wanted === "any" ? choices.one(TYPES) : wanted,
        item === undefined ? inner : { ...inner, names: { int: ["i"] } },
      ),
    )
    .replaceAll(/\bS\b/g, self);
}

/** Writes a random rule; some compare with the replaced value. */
export function randomRule(choices: Choices): JsonObject {
  const scope = { choices, depth: 1 + choices.below(3), names: {}, self: "self" } as const;
  const first = randomExpression("bool", scope);
  const isTransition = choices.happens(20);
  const rule = isTransition
    ? `(${first}) || ${randomExpression("bool", { ...scope, depth: 1, self: "oldSelf" })}`
    : first;
  return {
    rule,
    ...(choices.happens(30) ? { message: "as written" } : {}),
    ...(choices.happens(20)
      ? { fieldPath: choices.one([".a", ".o.x", ".m['k']", ".o['y-z']"]) }
      : {}),
    ...(choices.happens(20)
      ? {
          reason: choices.one(["FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]),
        }
      : {}),
    ...(choices.happens(20)
      ? {
          messageExpression: `'%s'.format([${randomExpression("string", { ...scope, depth: 1 })}])`,
        }
      : {}),
  };
}

const VALUES: Readonly<Record<string, readonly JsonValue[]>> = {
  a: [0, 1, 2, -3, 9_007_199_254_740_991],
  b: [1, 5],
  d: [0, 1.5, -2, 1e21, 3],
  s: ["", "x", "Ab é", "xyx", "😀x"],
  n: [null, "n", "x"],
  t: ["2024-01-01T00:00:00Z", "2024-02-29T23:59:59.5+02:00"],
  p: [0, 1, 80, "x", "80", "long"],
  l: [[], [1], [3, 1], [1, 2, 3]],
  set: [[], ["x"], ["y", "x"], ["x", "y"]],
  m: [{}, { k: 1 }, { k: 2, z: 1 }],
  o: [{}, { x: "x" }, { x: "q", "y-z": 4 }],
  ml: [
    [],
    [{ k: "a", v: 1 }],
    [
      { k: "b", v: 2 },
      { k: "a", v: 1 },
    ],
    [{ k: "a" }],
  ],
};

/** Makes a random object of {@link ruledSchema}, most with most fields. */
export function randomValue(choices: Choices): JsonObject {
  const value: JsonObject = {};
  for (const [name, values] of Object.entries(VALUES)) {
    if (choices.happens(85)) value[name] = choices.one(values);
  }
  return value;
}
