import type { JsonValue } from "./lossless-json.ts";
import { expect, test } from "vitest";
import { applyJsonPatch, JsonPatchError } from "./json-patch.ts";

const apply = (target: { [key: string]: JsonValue }, ...operations: JsonValue[]) =>
  applyJsonPatch(target, operations);

test("changes a copy, not the document", () => {
  const before = { list: [1, 2, 3] };
  expect(apply(before, { op: "remove", path: "/list/1" })).toEqual({ list: [1, 3] });
  expect(before).toEqual({ list: [1, 2, 3] });
});
test("adds to maps, into lists and at their end", () => {
  expect(
    apply(
      { list: [1], map: {} },
      { op: "add", path: "/list/0", value: 0 },
      { op: "add", path: "/list/-", value: 2 },
      { op: "add", path: "/map/a~1b~0c", value: null },
    ),
  ).toEqual({ list: [0, 1, 2], map: { "a/b~c": null } });
});
test("replace sets a missing member, as in the real server", () => {
  expect(apply({}, { op: "replace", path: "/a", value: 1 })).toEqual({ a: 1 });
});
test("moves and copies", () => {
  const moved = apply(
    { a: { b: 1 }, c: [] },
    { op: "copy", from: "/a", path: "/d" },
    { op: "move", from: "/a/b", path: "/c/0" },
  );
  expect(moved).toEqual({ a: {}, c: [1], d: { b: 1 } });
});
test("a test operation compares deeply, and missing equals null", () => {
  const target = { a: { b: [1, { c: 2 }] } };
  expect(apply(target, { op: "test", path: "/a", value: { b: [1, { c: 2 }] } })).toEqual(target);
  expect(apply(target, { op: "test", path: "/none", value: null })).toEqual(target);
  expect(() => apply(target, { op: "test", path: "/a/b/0", value: 2 })).toThrow(JsonPatchError);
  for (const path of ["/none/a", "/a/b/0/x", "/a/b/2", "/a/b/-"]) {
    expect(() => apply(target, { op: "test", path, value: null })).toThrow(JsonPatchError);
  }
});
test.each<[string, JsonValue]>([
  ["remove of a missing member", { op: "remove", path: "/none" }],
  ["replace of a missing item", { op: "replace", path: "/list/1", value: 1 }],
  ["an index beyond the end", { op: "add", path: "/list/5", value: 1 }],
  ["an index with a leading zero", { op: "add", path: "/list/00", value: 1 }],
  ["a missing parent", { op: "add", path: "/none/a", value: 1 }],
  ["an invalid pointer", { op: "add", path: "list", value: 1 }],
  ["an unknown operation", { op: "frobnicate", path: "/list" }],
  ["a missing value", { op: "add", path: "/list/0" }],
  ["a value that is not an operation", 5],
])("refuses %s", (_, operation) => {
  expect(() => apply({ list: [1] }, operation)).toThrow(JsonPatchError);
});
test("a member called __proto__ is a member", () => {
  const patched = apply({}, { op: "add", path: "/__proto__", value: { polluted: true } });
  expect(Object.hasOwn(patched as object, "__proto__")).toBe(true);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
test("names the operation that cannot be applied", () => {
  const patch = () =>
    apply({}, { op: "add", path: "/a", value: 1 }, { op: "remove", path: "/none" });
  expect(patch).toThrow(expect.objectContaining({ index: 1 }));
});
test("refuses copies that double a document with each operation", () => {
  const copies = Array.from({ length: 40 }, (_, at) => ({
    op: "copy",
    from: "",
    path: `/copy${at}`,
  }));
  expect(() => apply({ text: "x".repeat(1_000) }, ...copies)).toThrow(
    /copies more than 4500000 bytes/,
  );
});
