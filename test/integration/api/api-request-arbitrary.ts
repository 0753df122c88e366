import * as fc from "fast-check";

export type Json = Record<string, unknown>;

/** As much of an OpenAPI operation as requests are made of. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: Json;
  }[];
  readonly body: Json | undefined;
  readonly responses: Readonly<Record<string, Json>>;
}

export interface FuzzedRequest {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

/** Existing names, so that a request passes the first check. */
const KNOWN: Readonly<Record<string, string>> = {
  cluster: ".",
  controller: "node-pool",
  workflow: "roll",
  kind: "Widget",
  path: "/spec/size",
  namespace: "demo",
  name: "blue",
  id: "node-pool/default/nodepools.demo.konverge.dev/demo/blue@1",
  by: "ada",
  reason: "because",
  epoch: "1",
  cursor: "1-1",
};
const HOSTILE = [
  "",
  " ",
  "_",
  "..",
  "../..",
  "../../etc/passwd",
  "a/b",
  "%",
  "%00",
  "%2F",
  "\u0000",
  "a\r\nSet-Cookie: x=1",
  "__proto__",
  "constructor",
  "<img src=x onerror=alert(1)>",
  "'; FLUSHALL",
  "*",
  "[a-z]*",
  "{default}",
  "nodes",
  "\u202E\u0301ä漢😀",
  "\uD800",
  "\uDFFF\uD800",
  "-1",
  "1e999",
  "9".repeat(40),
  "x".repeat(5_000),
];
const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
);
const anyJson = fc.oneof(
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, [], {}, 0, -0, 1e308, true, "x") },
);

/** Values at the limits of a schema, and just beyond them. */
function limitsOf(schema: Json): fc.Arbitrary<unknown> {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems } = schema as Partial<
    Record<string, number>
  >;
  const around = (limit: number | undefined, make: (value: number) => unknown) =>
    limit === undefined ? [] : [limit - 1, limit, limit + 1].filter((n) => n >= 0).map(make);
  const values = [
    ...around(minLength, (length) => "x".repeat(length)),
    ...around(maxLength, (length) => "x".repeat(length)),
    ...around(minimum, (value) => value),
    ...around(maximum, (value) => value),
    ...around(minItems, (length) => Array.from({ length }, () => ({}))),
    ...around(maxItems, (length) => Array.from({ length }, () => ({}))),
  ];
  if (values.length > 0) return fc.constantFrom(...values);
  return typeof schema["pattern"] === "string"
    ? fc.stringMatching(new RegExp(schema["pattern"]), { maxLength: 300 })
    : fc.constant("x");
}

/** Mostly what the schema wants, now and then something else, so that every check is reached. */
function valueOf(name: string, schema: Json): fc.Arbitrary<unknown> {
  const { type, properties, items } = schema as {
    type?: string;
    properties?: Record<string, Json>;
    items?: Json;
  };
  const fitting = () => {
    if (Array.isArray(schema["enum"])) return fc.constantFrom(...(schema["enum"] as unknown[]));
    if (properties !== undefined) return objectOf(properties);
    if (items !== undefined) return fc.array(valueOf(name, items), { maxLength: 5 });
    if (type === "boolean") return fc.boolean();
    if (type === "integer" || type === "number") return fc.integer({ min: 0, max: 100 });
    return fc.constant(KNOWN[name] ?? "x");
  };
  return fc.oneof(
    { weight: 40, arbitrary: fitting() },
    { weight: 5, arbitrary: limitsOf(schema) },
    { weight: 3, arbitrary: text },
    { weight: 1, arbitrary: anyJson },
  );
}

function objectOf(properties: Readonly<Record<string, Json>>): fc.Arbitrary<Json> {
  const fields = Object.entries(properties).map(([name, schema]) =>
    fc
      .option(valueOf(name, schema), { freq: 6, nil: undefined })
      .map((value): [string, unknown][] => (value === undefined ? [] : [[name, value]])),
  );
  const extra = fc.oneof(
    { weight: 12, arbitrary: fc.constant<[string, unknown][]>([]) },
    {
      weight: 1,
      arbitrary: fc.tuple(text, anyJson).map((pair): [string, unknown][] => [pair]),
    },
  );
  return fc.tuple(...fields, extra).map((parts) => Object.fromEntries(parts.flat()));
}

const broken = fc.constantFrom(
  "",
  "{",
  '{"a":',
  "nul",
  "\u0000",
  "[".repeat(20_000),
  `${"[".repeat(10_000)}${"]".repeat(10_000)}`,
  `{"a":${"9".repeat(5_000)}}`,
  '{"reason":"x","reason":"y","__proto__":{"by":"z"}}',
  '{"items":[{"__proto__":{}}]}',
  "\uFEFF{}",
);

/** A path segment, at times with an encoding of its own. */
const segmentOf = (name: string) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(encodeURIComponent(KNOWN[name] ?? "x")) },
    {
      weight: 3,
      arbitrary: text.map((value) => encodeURIComponent(value.toWellFormed()) || "%20"),
    },
    { weight: 1, arbitrary: fc.constantFrom("%", "%zz", "%c3%28", "%2e%2e", "%00", "a%0d%0ab") },
  );

/** The characters that a header may contain. */
const printable = (value: string) => value.replaceAll(/[^\u0020-\u007E]/g, "?").trim();
const headerOf = (schema: Json) =>
  fc.oneof(
    limitsOf(schema).map((value) => printable(String(value))),
    text.map(printable),
    fc.constantFrom("1-1.1-1.1", "wait=0", "wait=1", "wait=-1", "respond-async", "00-x-y-01"),
  );

export function requestFor({ path, parameters, body }: Operation): fc.Arbitrary<FuzzedRequest> {
  const inPath = parameters.filter((parameter) => parameter.in === "path");
  const inQuery = parameters.filter((parameter) => parameter.in === "query");
  const inHeader = parameters.filter((parameter) => parameter.in === "header");
  const segments = fc.tuple(...inPath.map(({ name }) => segmentOf(name)));
  const query = objectOf(Object.fromEntries(inQuery.map(({ name, schema }) => [name, schema])));
  const headers = fc.tuple(
    ...inHeader.map(({ name, schema }) =>
      fc.option(
        headerOf(schema).map((value): [string, string] => [name, value]),
        { freq: 1, nil: undefined },
      ),
    ),
  );
  const type = fc.oneof(
    { weight: 12, arbitrary: fc.constant("application/json") },
    { weight: 1, arbitrary: fc.constantFrom("text/plain", "", "application/jsonx", 'a/b; c="') },
  );
  const content = fc.oneof(
    { weight: 6, arbitrary: valueOf("body", body ?? {}).map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: broken },
  );
  return fc.record({ segments, query, headers, type, content }).map((made) => {
    let filled = path;
    for (const [index, { name }] of inPath.entries()) {
      filled = filled.replace(`{${name}}`, () => made.segments[index] ?? "");
    }
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(made.query)) {
      search.set(name, typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
    }
    const given = made.headers.filter((pair) => pair !== undefined);
    return {
      path: search.size === 0 ? filled : `${filled}?${search.toString()}`,
      headers: {
        ...Object.fromEntries(given),
        ...(body === undefined ? {} : { "content-type": made.type }),
      },
      body: body === undefined ? undefined : made.content,
    };
  });
}
