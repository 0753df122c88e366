import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  cloneJson,
  getOwn,
  isJsonObject,
  parseJson,
  setOwn,
  type JsonObject,
  type JsonValue,
} from "./lossless-json.ts";
import { applyMergePatch, diffMergePatch } from "./merge-patch.ts";

const json = fc.jsonValue({ maxDepth: 4 }).map((value) => parseJson(JSON.stringify(value)));
const objects = fc
  .dictionary(fc.oneof(fc.constantFrom("a", "b", "__proto__", "constructor"), fc.string()), json)
  .map((value) => parseJson(JSON.stringify(value)) as JsonObject);

/** Related pairs, since two random objects rarely share a member. */
const pairs = fc.oneof(
  fc.tuple(objects, objects),
  fc.tuple(objects, objects).map(([left, right]) => [left, { ...left, ...right }] as const),
  fc
    .tuple(objects, objects)
    .map(([left, right]) => [{ nested: left, x: 1 }, { nested: { ...left, ...right } }] as const),
);

/** Values that a merge patch can express: no null members outside lists. */
function withoutNulls(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value;
  const kept: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = getOwn(value, key);
    if (member !== null && member !== undefined) setOwn(kept, key, withoutNulls(member));
  }
  return kept;
}
const text = (value: JsonValue): JsonValue => parseJson(JSON.stringify(value));

// RFC 7396, appendix A: original, patch, result.
const APPENDIX: readonly (readonly [string, string, string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', "{}"],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', "null", "null"],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ["[1,2]", '{"a":"b","c":null}', '{"a":"b"}'],
  ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];

test.each(APPENDIX)("RFC 7396: %s with %s is %s", (original, patch, result) => {
  expect(JSON.stringify(applyMergePatch(parseJson(original), parseJson(patch)))).toBe(result);
});

test("applying the difference yields the target, except for nulls that a merge patch cannot express", () => {
  fc.assert(
    fc.property(pairs, ([before, after]) => {
      const patched = applyMergePatch(before, diffMergePatch(before, after) ?? {});
      expect(text(withoutNulls(patched))).toEqual(text(withoutNulls(after)));
    }),
  );
});

test("equal objects have no difference", () => {
  fc.assert(
    fc.property(objects, (object) => {
      expect(diffMergePatch(object, cloneJson(object))).toBeUndefined();
    }),
  );
});

test("diff and apply neither change nor share their arguments", () => {
  fc.assert(
    fc.property(pairs, ([before, after]) => {
      const texts = [JSON.stringify(before), JSON.stringify(after)];
      const patch = diffMergePatch(before, after);
      const patched = applyMergePatch(before, patch ?? {});
      scribble(patched);
      if (patch !== undefined) scribble(patch);
      expect([JSON.stringify(before), JSON.stringify(after)]).toEqual(texts);
    }),
  );
});

test("the patch contains changed members only, removed ones as null", () => {
  const before = { spec: { replicas: 2, image: "a", list: [1, 2] }, keep: { deep: true } };
  const after = { spec: { replicas: 3, list: [1] }, keep: { deep: true } };
  expect(diffMergePatch(before, after)).toEqual({ spec: { replicas: 3, image: null, list: [1] } });
});

test("a member set to undefined is removed; an absent one is ignored", () => {
  const after = { a: undefined, b: undefined } as unknown as JsonObject;
  expect(diffMergePatch({ a: 1 }, after)).toEqual({ a: null });
  expect(diffMergePatch({}, { a: null })).toBeUndefined();
});

test("a change in the last digit of a long integer is a change", () => {
  const before = parseJson('{"n":9007199254740993,"m":9007199254740993}') as JsonObject;
  const after = parseJson('{"n":9007199254740992,"m":9007199254740993}') as JsonObject;
  expect(JSON.stringify(diffMergePatch(after, before))).toBe('{"n":9007199254740993}');
});

test("adds, changes and removes a label named __proto__", () => {
  const none = parseJson("{}") as JsonObject;
  const one = parseJson('{"__proto__":"x"}') as JsonObject;
  expect(JSON.stringify(diffMergePatch(none, one))).toBe('{"__proto__":"x"}');
  expect(JSON.stringify(applyMergePatch(none, one))).toBe('{"__proto__":"x"}');
  expect(JSON.stringify(diffMergePatch(one, none))).toBe('{"__proto__":null}');
  expect(JSON.stringify(applyMergePatch(one, diffMergePatch(one, none) ?? {}))).toBe("{}");
});

function scribble(value: JsonValue): void {
  if (Array.isArray(value)) {
    value.forEach(scribble);
    value.push("scribble");
  } else if (isJsonObject(value)) {
    Object.values(value).forEach(scribble);
    value.scribble = true;
  }
}
