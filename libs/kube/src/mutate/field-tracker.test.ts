import { parseJson, type JsonObject, type JsonValue } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { makeDraft, patchOf } from "./draft.ts";
import { trackFields, untracked } from "./field-tracker.ts";
import { fieldsPatch } from "./fields-patch.ts";

const object = (): JsonObject =>
  parseJson(
    `{"apiVersion":"v1","kind":"Pool",
      "metadata":{"name":"a","uid":"u","resourceVersion":"7","labels":{"app":"x","a/b~c":"y"},
        "managedFields":[{"manager":"m"}]},
      "spec":{"replicas":1,"serial":9007199254740993,"none":null,"list":[{"x":1},{"x":2}],"deep":{"er":{"n":1}},"empty":{}},
      "odd":{"deep":[{"x":[1,null]}]}}`,
  ) as JsonObject;

/**
 * The patch for a change by untyped code: `test` as `? path value`, other operations by their first letter, without the
 * test of the uid.
 */
async function patchAfter(
  change: (draft: any) => unknown,
  subresource?: string,
): Promise<string[] | undefined> {
  const read = object();
  const edited = makeDraft(read, subresource);
  const tracked = trackFields(edited.draft);
  await change(tracked.draft);
  const patch = patchOf(edited, subresource);
  if (patch === undefined) return undefined;
  const [uid, ...rest] = fieldsPatch({ read, touched: tracked.touched, patch });
  expect(uid).toEqual({ op: "test", path: "/metadata/uid", value: "u" });
  const signs: Record<string, string> = { test: "?", add: "+", replace: "=", remove: "-" };
  return rest.map(({ op, path, value }) =>
    [signs[op as string], path, ...(value === undefined ? [] : [JSON.stringify(value)])].join(" "),
  );
}

const all =
  '{"replicas":1,"serial":9007199254740993,"none":null,"list":[{"x":1},{"x":2}],"deep":{"er":{"n":1}},"empty":{}}';

describe("tests the touched fields and writes the difference:", () => {
  test.each<[string, (draft: any) => unknown, string[]]>([
    ["a blind write", (o) => (o.spec.replicas = 2), ["? /spec/replicas 1", "= /spec/replicas 2"]],
    ["an increment", (o) => o.spec.replicas++, ["? /spec/replicas 1", "= /spec/replicas 2"]],
    [
      "a write that depends on another field",
      (o) => o.spec.deep.er.n === 1 && (o.spec.replicas = 2),
      ["? /spec/deep/er/n 1", "? /spec/replicas 1", "= /spec/replicas 2"],
    ],
    [
      "a missing member",
      (o) => (o.metadata.labels.team ??= "t"),
      ["? /metadata/labels/team null", '+ /metadata/labels/team "t"'],
    ],
    [
      "a member below a missing one is tested at the topmost missing parent",
      (o) => ((o.status ??= {}).conditions ??= []).push({ type: "Ready" }),
      ["? /status null", '+ /status {"conditions":[{"type":"Ready"}]}'],
    ],
    [
      "an optional chain that ends early",
      (o) => o.spec.gone?.further ?? (o.spec.replicas = 2),
      ["? /spec/gone null", "? /spec/replicas 1", "= /spec/replicas 2"],
    ],
    [
      "keys with slashes and tildes",
      (o) => delete o.metadata.labels["a/b~c"],
      ['? /metadata/labels/a~1b~0c "y"', "- /metadata/labels/a~1b~0c"],
    ],
    [
      "a list is one value",
      (o) => (o.spec.list[1].x = 3),
      ['? /spec/list [{"x":1},{"x":2}]', '= /spec/list [{"x":1},{"x":3}]'],
    ],
    [
      "an item that is searched for",
      (o) => o.spec.list.find((item: any) => item.x === 2) && (o.spec.replicas = 0),
      ['? /spec/list [{"x":1},{"x":2}]', "? /spec/replicas 1", "= /spec/replicas 0"],
    ],
    [
      "a removed object",
      (o) => delete o.spec.deep,
      ['? /spec/deep {"er":{"n":1}}', "- /spec/deep"],
    ],
    [
      "a spread reads and writes the object",
      (o) => (o.metadata.labels = { ...o.metadata.labels, z: "z" }),
      ['? /metadata/labels {"app":"x","a/b~c":"y"}', '+ /metadata/labels/z "z"'],
    ],
    [
      "keys are read as a whole",
      (o) => (o.spec.replicas = Object.keys(o.spec.deep).length + 1),
      ['? /spec/deep {"er":{"n":1}}', "? /spec/replicas 1", "= /spec/replicas 2"],
    ],
    [
      "for in",
      (o) => {
        for (const key in o.metadata.labels) o.spec[key] = true;
      },
      [
        '? /metadata/labels {"app":"x","a/b~c":"y"}',
        "? /spec/app null",
        "? /spec/a~1b~0c null",
        "+ /spec/app true",
        "+ /spec/a~1b~0c true",
      ],
    ],
    [
      "JSON.stringify",
      (o) => (o.spec.copy = JSON.stringify(o.spec.deep)),
      ['? /spec/deep {"er":{"n":1}}', "? /spec/copy null", '+ /spec/copy "{\\"er\\":{\\"n\\":1}}"'],
    ],
    [
      "the existence of an object",
      (o) => o.spec.deep && o.spec.empty && (o.spec.replicas = 2),
      ["? /spec/deep/- null", "? /spec/empty/- null", "? /spec/replicas 1", "= /spec/replicas 2"],
    ],
    [
      "in and hasOwn",
      (o) => "serial" in o.spec && !Object.hasOwn(o.spec, "gone") && (o.spec.replicas = 2),
      [
        "? /spec/serial 9007199254740993",
        "? /spec/gone null",
        "? /spec/replicas 1",
        "= /spec/replicas 2",
      ],
    ],
    [
      "an object assigned elsewhere is read as a whole",
      (o) => {
        o.spec.copy = o.spec.deep;
        o.spec.boxed = { list: [o.spec.empty] };
      },
      [
        '? /spec/deep {"er":{"n":1}}',
        "? /spec/copy null",
        "? /spec/empty {}",
        "? /spec/boxed null",
        '+ /spec/copy {"er":{"n":1}}',
        '+ /spec/boxed {"list":[{}]}',
      ],
    ],
    [
      "a write that is reverted",
      (o) => {
        o.spec.deep.er.n = 5;
        o.spec.deep.er.n = 1;
        o.spec.replicas = 2;
      },
      ["? /spec/deep/er/n 1", "? /spec/replicas 1", "= /spec/replicas 2"],
    ],
    [
      "an equal value must stay equal",
      (o) => {
        o.spec.deep.er.n = 1;
        o.spec.replicas = 2;
      },
      ["? /spec/deep/er/n 1", "? /spec/replicas 1", "= /spec/replicas 2"],
    ],
    [
      "a null means absence, as in a merge patch",
      (o) => {
        o.spec.replicas = null;
        o.spec.none = 1;
        o.spec.fresh = { a: null, b: [null] };
      },
      [
        "? /spec/replicas 1",
        "? /spec/none null",
        "? /spec/fresh null",
        "- /spec/replicas",
        "= /spec/none 1",
        '+ /spec/fresh {"b":[null]}',
      ],
    ],
    [
      "constant fields are not tested",
      (o) => (o.spec.replicas = `${o.kind} ${o.metadata.name} ${o.metadata.uid}`.length),
      ["? /spec/replicas 1", "= /spec/replicas 8"],
    ],
    [
      "inherited properties are not members",
      (o) => o.spec.hasOwnProperty("x") || (o.spec.replicas = String(o.spec.deep).length),
      ["? /spec/x null", "? /spec/deep/- null", "? /spec/replicas 1", "= /spec/replicas 15"],
    ],
    [
      "defineProperty is a write",
      (o) => Object.defineProperty(o.spec, "replicas", { value: 4, enumerable: true }),
      ["? /spec/replicas 1", "= /spec/replicas 4"],
    ],
    [
      "an async change, a frozen value",
      async (o) => {
        o.spec.deep = await Promise.resolve(Object.freeze({ er: Object.freeze({ n: 2 }) }));
        o.spec.replicas = o.spec.deep.er.n;
      },
      [
        '? /spec/deep {"er":{"n":1}}',
        "? /spec/replicas 1",
        "= /spec/replicas 2",
        "= /spec/deep/er/n 2",
      ],
    ],
  ])("%s", async (_name, change, expected) => {
    expect(await patchAfter(change)).toEqual(expected);
  });
});

test.each<[string, (draft: any) => unknown]>([
  ["the version", (o) => o.metadata.resourceVersion],
  ["managed fields", (o) => o.metadata.managedFields],
  ["all metadata", (o) => ({ ...o.metadata })],
  ["everything", (o) => Object.entries(o)],
  ["everything, as text", (o) => JSON.stringify(o)],
  ["a list with a null in it", (o) => o.odd.deep],
])("reading %s counts as reading the version", async (_name, look) => {
  const patch = await patchAfter((draft) => {
    look(draft);
    draft.spec.replicas = 2;
  });
  expect(patch).toEqual(['= /metadata/resourceVersion "7"', "= /spec/replicas 2"]);
});

test("a missing status is tested for absence", async () => {
  const patch = await patchAfter((draft) => (draft.status.ready = draft.spec.replicas), "status");
  expect(patch).toEqual(["? /status null", "? /spec/replicas 1", '+ /status {"ready":1}']);
  expect(await patchAfter((draft) => draft.status.ready, "status")).toBeUndefined();
});

test("reading alone is not a write", async () => {
  expect(await patchAfter((draft) => JSON.stringify(draft))).toBeUndefined();
});

test("tests a whole object as the server has it, including nulls", async () => {
  const patch = await patchAfter((draft) => {
    Object.keys(draft.spec);
    draft.spec.replicas = 2;
  });
  expect(patch).toEqual([`? /spec ${all}`, "= /spec/replicas 2"]);
});

test("inspecting the object behind a draft records no read", async () => {
  const patch = await patchAfter((draft) => {
    JSON.stringify(untracked(draft));
    draft.spec.replicas = 2;
  });
  expect(patch).toEqual(["? /spec/replicas 1", "= /spec/replicas 2"]);
  const plain: JsonValue = {};
  expect(untracked(plain)).toBe(plain);
});

test("a draft is the same object in comparisons", async () => {
  await patchAfter((draft) => {
    expect(draft.spec).toBe(draft.spec);
    expect(Array.isArray(draft.spec.list)).toBe(true);
    const { deep } = draft.spec;
    draft.spec.deep = deep;
    expect(draft.spec.deep.er.n).toBe(1);
  });
});
