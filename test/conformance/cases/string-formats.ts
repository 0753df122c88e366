import type { JsonObject, JsonValue } from "@konverge/core";
import type { Case } from "../case.ts";
import { definitions } from "../objects.ts";
import { definitionOf, numbered } from "../ruled-definition.ts";

/** Right and wrong values of the formats of strings. */
const FORMATS: Readonly<Record<string, readonly [readonly JsonValue[], readonly JsonValue[]]>> = {
  bsonobjectid: [["0123456789abcdefABCDEF01"], ["0123456789abcdef", "x".repeat(24), ""]],
  creditcard: [
    ["4111-1111 1111 1111", "378282246310005"],
    ["4111111111111112", "", "1"],
  ],
  "date-time": [
    ["2024-01-01T00:00:00Z", [], ["a", 1]],
    ["2024-01-01", true, 7, 1.5, {}],
  ],
  datetime: [["2024-01-01T00:00:00.5+02:00"], ["2024-01-01"]],
  duration: [
    ["1h30m", "2 minutes", "-1.5s", "1 Day 2 hours", "1 foo 2 weeks", "1µs", "0"],
    ["1", "", "1 x", "h", "99999999999999999999 s"],
  ],
  email: [
    [
      "a@b",
      "a.b+c@x.y",
      "Name <a@b>",
      '"a b"@c',
      "a@[10.0.0.1]",
      "a@b (c (d))",
      "é@ü",
      '"Q, x" N. <a@b>',
      "g: a@b;",
      " a@b ",
      "a@ b",
    ],
    [
      "",
      "a",
      "a@",
      "@b",
      "a@b@c",
      "a..b@c",
      ".a@b",
      "a@b.",
      "a b@c",
      '""@c',
      "a@[x]",
      "a@[fe80::1%1]",
      "g: a@b, c@d;",
      "g:;",
      "(c) a@b",
      "<a@b",
      "a@b, c@d",
      "N <a@b> x",
      "a@b (c",
    ],
  ],
  hexcolor: [
    ["#FFFFFF", "abc"],
    ["#ffff", "", "#ggg"],
  ],
  hostname: [
    ["a", "a.example", "1.example", "a-b.example", "é.example", "☃.example"],
    ["", "-a.example", "a_b", "a.1", "a..b", "a b", `${"a".repeat(64)}.example`],
  ],
  isbn: [
    ["0321751043", "978-0321751041"],
    ["0321751044", ""],
  ],
  isbn10: [
    ["0-321-75104-3", "0 8044 2957 X"],
    ["978-0321751041", "032175104x"],
  ],
  isbn13: [
    ["978-0321751041", "978 0321751041"],
    ["9780321751042", "0321751043"],
  ],
  "k8s-short-name": [
    ["a", "a-1"],
    ["A", "-a", "a.b", "a".repeat(64)],
  ],
  "k8s-long-name": [
    ["a.b", "1"],
    ["a..b", "A", ""],
  ],
  mac: [
    ["01:23:45:67:89:ab", "01-23-45-67-89-AB-cd-ef", "0123.4567.89ab", "0123456789ab"],
    [
      "01:23:45:67:89",
      "01:23-45:67:89:ab",
      "0123.4567",
      "",
      "01:23:45:67:89:ag",
      "012.345.678.9ab",
    ],
  ],
  password: [["", "x"], [7]],
  rgbcolor: [
    ["rgb(1, 2,255)", "rgb(0,0,0)"],
    ["rgb(1,2,256)", "RGB(1,2,3)", "rgb(01,2,3)"],
  ],
  ssn: [
    ["123-45-6789", "123 45 6789"],
    ["123456789", "123-456-789"],
  ],
  uri: [
    ["http://a/b", "/a", "a:b", "*"],
    ["a", "", "http://a b/"],
  ],
  uuid3: [["123e4567-e89b-32d3-0456-426614174000"], ["123e4567-e89b-42d3-0456-426614174000"]],
  uuid4: [["123e4567-e89b-42d3-A456-426614174000"], ["123e4567-e89b-42d3-0456-426614174000"]],
  uuid5: [["123e4567e89b52d3b456426614174000"], ["123e4567-e89b-52d3-0456-426614174000"]],
};

const group = "formats.konverge.dev";
const names = Object.keys(FORMATS);
const send = (format: string, value: JsonValue, code: number) => {
  const field = `f${names.indexOf(format)}`;
  return {
    send: `POST /apis/${group}/v1/formatteds?dryRun=All`,
    body: {
      apiVersion: `${group}/v1`,
      kind: "Formatted",
      metadata: { name: "a" },
      [field]: value,
    } satisfies JsonObject,
    retry: true,
    // The real server cannot record the managers of a list in the place of a string.
    ...(Array.isArray(value) ? { ignore: ["metadata"] } : {}),
    expect: code === 201 ? { code } : { code, causes: [{ field }] },
  };
};

/** Formats of strings in schemas. */
export const stringFormats: readonly Case[] = [
  {
    name: "formats of strings are checked",
    waits: true,
    steps: [
      {
        send: `POST ${definitions}`,
        body: definitionOf(
          { group, plural: "formatteds", kind: "Formatted" },
          numbered(names.map((format) => ({ type: "string", format }))),
        ),
        // Times of the conditions.
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
      ...Object.entries(FORMATS).flatMap(([format, [right, wrong]]) => [
        ...right.map((value) => send(format, value, 201)),
        ...wrong.map((value) => send(format, value, 422)),
      ]),
      {
        send: `DELETE ${definitions}/formatteds.${group}`,
        ignore: ["metadata", "status"],
        expect: { code: 200 },
      },
    ],
  },
];
