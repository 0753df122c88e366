import {
  applyJsonPatch,
  applyMergePatch,
  cloneJson,
  deepFreeze,
  getOwn,
  isJsonObject,
  jsonEquals,
  parseJson,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import * as fc from "fast-check";
import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { applyChanges } from "./apply-changes.ts";
import type { DraftChange, JsonPatchOperation } from "./change.ts";
import { formatPointer, parsePointer } from "./pointer.ts";
import { readAt } from "./update-at.ts";

const given = process.env["KONVERGE_TEST_SEED"];
const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
const runs = { seed, numRuns: 2_000 };

const names = fc.constantFrom(
  "a",
  "b",
  "",
  "a/b",
  "a~b",
  "0",
  "1",
  "-",
  "__proto__",
  "constructor",
);
const scalars = fc.constantFrom<JsonValue>("x", "7", "-3", "1e3", 0, 4, 1.5, true, false);
const { value: values } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalars,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 4 }) as fc.Arbitrary<JsonValue>,
  ),
}));
const objects = fc
  .dictionary(names, values, { maxKeys: 5 })
  .map((object) => cloneJson(object) as JsonObject);
const segments = fc.array(names, { minLength: 1, maxLength: 4 });
const paths = segments.map(formatPointer);
/** Changes of random fields, of the fields of an object, and with values that it has. */
function changesOf(draft: JsonObject): fc.Arbitrary<DraftChange> {
  const known = entriesOf(draft, []);
  const path =
    known.length === 0 ? paths : fc.oneof(paths, fc.constantFrom(...known.map(([way]) => way)));
  const value = fc.oneof(values, fc.constantFrom<JsonValue>(1, ...known.map(([, each]) => each)));
  const items = known.flatMap(([list, each]): DraftChange[] =>
    Array.isArray(each)
      ? each.flatMap((item) => [
          { kind: "append", path: list, value: cloneJson(item) },
          { kind: "remove", path: list, value: cloneJson(item) },
        ])
      : [],
  );
  return fc.oneof(
    ...(items.length === 0 ? [] : [fc.constantFrom(...items)]),
    fc.record({ kind: fc.constant("set" as const), path, value }),
    fc.record({ kind: fc.constant("merge" as const), patch: objects }),
    fc.record({ kind: fc.constant("increment" as const), path, by: fc.integer() }),
    fc.record({ kind: fc.constant("append" as const), path, value }),
    fc.record({ kind: fc.constant("remove" as const), path }),
    fc.record({ kind: fc.constant("remove" as const), path, value }),
  );
}

function entriesOf(value: JsonValue, way: readonly string[]): [path: string, value: JsonValue][] {
  const below = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const entries = below.flatMap(([name, each]) => entriesOf(each as JsonValue, [...way, name]));
  // Copied, because an equal value of a change is never the same value.
  return way.length === 0 ? entries : [[formatPointer(way), cloneJson(value)], ...entries];
}

const cases = objects.chain((draft) => changesOf(draft).map((change) => ({ draft, change })));
const series = objects.chain((draft) =>
  fc.array(changesOf(draft), { maxLength: 6 }).map((list) => ({ draft, list })),
);

/**
 * The reference: the same changes as merge patches for missing parents and JSON Patches for the rest. Throws if the change
 * does not fit.
 */
function reference(draft: JsonObject, change: DraftChange): JsonValue {
  if (change.kind === "merge") return applyMergePatch(draft, change.patch);
  if (change.kind === "jsonPatch") return applyJsonPatch(draft, change.patch);
  const { path } = change;
  const way = parsePointer(path) ?? [];
  const before = readAt(draft, way);
  const write = (value: JsonValue) => {
    let object: JsonValue = draft;
    for (let depth = 1; depth < way.length; depth++) {
      const parent = way.slice(0, depth);
      if (readAt(object, parent) !== undefined) continue;
      if (Array.isArray(readAt(object, parent.slice(0, -1)))) fail();
      object = patch(object, { op: "add", path: formatPointer(parent), value: {} });
    }
    const isItem = Array.isArray(readAt(object, way.slice(0, -1))) && way.at(-1) !== "-";
    return patch(object, { op: isItem ? "replace" : "add", path, value });
  };
  switch (change.kind) {
    case "set":
      return write(change.value);
    case "increment": {
      const old = before ?? 0;
      const isInteger = Number.isInteger(old) || (typeof old === "string" && /^-?\d+$/.test(old));
      if (!isInteger) throw new Error("not an integer");
      const sum = Number(old) + change.by;
      return write(typeof old === "string" ? String(sum) : sum);
    }
    case "append": {
      const list = before ?? [];
      if (!Array.isArray(list)) throw new Error("not a list");
      const isThere = list.some((item) => jsonEquals(item, change.value));
      return write(isThere ? list : [...list, change.value]);
    }
    case "remove": {
      if (before === undefined) return isReachable(draft, way) ? draft : fail();
      if (change.value === undefined) return patch(draft, { op: "remove", path });
      if (!Array.isArray(before)) throw new Error("not a list");
      return write(before.filter((item) => !jsonEquals(item, change.value)));
    }
  }
}

const fail = (): never => {
  throw new Error("unfit");
};
const patch = (object: JsonValue, operation: JsonPatchOperation) =>
  applyJsonPatch(object as JsonObject, [operation]);

/** False if a parent is neither an object nor a list, or if a name is used for an item of a list. */
function isReachable(object: JsonObject, way: readonly string[]): boolean {
  let value: JsonValue = object;
  for (const [depth, segment] of way.entries()) {
    if (Array.isArray(value)) {
      const item: JsonValue | undefined = readAt(value, [segment]);
      if (item === undefined) return depth === way.length - 1 && /^\d+$/.test(segment);
      value = item;
    } else if (isJsonObject(value)) {
      const member = getOwn(value, segment);
      if (member === undefined) return true;
      value = member;
    } else return false;
  }
  return true;
}

test(`a change has the effect of JSON Patches and merge patches (seed ${seed})`, () => {
  const property = fc.property(cases, ({ draft, change }) => {
    let expected: JsonValue | undefined;
    try {
      expected = reference(draft, change);
    } catch {
      expected = undefined;
    }
    const result = applyChanges(draft, [change]);
    if (expected === undefined) expect(result).toHaveProperty("refused");
    else expect(result).toEqual({ object: expected });
  });
  fc.assert(property, runs);
});

test(`changes are made in order, all or none, and never in place (seed ${seed})`, () => {
  const property = fc.property(series, ({ draft, list }) => {
    const before = JSON.stringify(draft);
    deepFreeze(draft);
    const result = applyChanges(draft, list);
    expect(JSON.stringify(draft)).toBe(before);
    expect(applyChanges(draft, list)).toEqual(result);
    let object: JsonObject | undefined = draft;
    for (const change of list) {
      const next = applyChanges(object, [change]);
      object = "object" in next ? next.object : undefined;
      if (object === undefined) break;
    }
    expect("object" in result ? result.object : undefined).toEqual(object);
    expect(({} as { a?: unknown }).a).toBeUndefined();
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
  fc.assert(property, runs);
});

const apply = (draft: JsonObject, ...list: DraftChange[]) => applyChanges(draft, list);

test("a member called __proto__ is a member", () => {
  const result = apply(
    {},
    { kind: "set", path: "/__proto__/polluted", value: true },
    { kind: "set", path: "/constructor/prototype/polluted", value: true },
  );
  expect("object" in result && Object.hasOwn(result.object, "__proto__")).toBe(true);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("increments keep text as text, and integers beyond 2^53 exact", () => {
  const draft = parseJson(
    '{"kind":"ConfigMap","apiVersion":"v1","data":{"count":"41"},"spec":{"big":9007199254740993}}',
  ) as JsonObject;
  const result = apply(
    draft,
    { kind: "increment", path: "/data/count", by: 1 },
    { kind: "increment", path: "/data/new", by: 2 },
    { kind: "increment", path: "/metadata/labels/n", by: 3 },
    { kind: "increment", path: "/spec/replicas", by: -4 },
    { kind: "increment", path: "/spec/big", by: 2 },
  );
  expect(JSON.stringify("object" in result && result.object)).toBe(
    '{"kind":"ConfigMap","apiVersion":"v1","data":{"count":"42","new":"2"},"spec":{"big":9007199254740995,"replicas":-4},"metadata":{"labels":{"n":"3"}}}',
  );
});

test.each<[string, DraftChange, string]>([
  ["a parent that is text", { kind: "set", path: "/t/x", value: 1 }, "/t is text, so /t/x"],
  [
    "an item that does not exist",
    { kind: "set", path: "/l/3", value: 1 },
    '2 items without an item "3"',
  ],
  ["a name in a list", { kind: "remove", path: "/l/name" }, 'without an item "name"'],
  ["increment of text", { kind: "increment", path: "/t", by: 1 }, "/t is text without an integer"],
  ["increment of a fraction", { kind: "increment", path: "/f", by: 1 }, "/f is not an integer"],
  [
    "increment beyond 64 bits",
    { kind: "increment", path: "/m", by: 1 },
    "exceeds a 64-bit integer",
  ],
  ["append to an object", { kind: "append", path: "/o", value: 1 }, "/o is an object, not a list"],
  [
    "a JSON Patch that does not fit",
    { kind: "jsonPatch", patch: [{ op: "remove", path: "/none" }] },
    "operation 0 of the JSON Patch",
  ],
])("refuses %s, without the values of the object", (_, change, text) => {
  const draft = { t: "hunter2", l: [1, 2], f: 1.5, o: {}, m: "9223372036854775807" };
  const result = apply(draft, { kind: "set", path: "/first", value: 1 }, change);
  expect(result).toEqual({ refused: expect.stringContaining(text) as string, index: 1 });
  expect(JSON.stringify(result)).not.toContain("hunter2");
});
