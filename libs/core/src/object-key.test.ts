import * as fc from "fast-check";
import { expect, test } from "vitest";
import { formatKey, parseKey, type ObjectKey } from "./object-key.ts";

const segment = fc.oneof(
  fc.string({ minLength: 1, unit: "grapheme" }),
  fc.string({ minLength: 1, unit: "binary" }),
  fc.constantFrom(
    "_",
    "__",
    "/",
    "%",
    "%5F",
    "%2F",
    ".",
    "..",
    "a/b",
    " ",
    "é",
    "日本",
    "🦊",
    "__proto__",
  ),
);
const keys: fc.Arbitrary<ObjectKey> = fc
  .record({
    controller: segment,
    cluster: segment,
    resource: segment.filter((text) => !text.includes(".")),
    group: fc.oneof(fc.constant(""), segment),
    namespace: fc.option(segment, { nil: undefined }),
    name: segment,
  })
  .map(({ namespace, ...rest }) => (namespace === undefined ? rest : { ...rest, namespace }));

const pool: ObjectKey = {
  controller: "node-pool",
  cluster: "default",
  resource: "nodepools",
  group: "demo.konverge.dev",
  namespace: "team-a",
  name: "blue",
};

test("formats a key like a path", () => {
  expect(formatKey(pool)).toBe("node-pool/default/nodepools.demo.konverge.dev/team-a/blue");
  const node = { controller: "drain", cluster: "eu", resource: "nodes", group: "", name: "n1" };
  expect(formatKey(node)).toBe("drain/eu/nodes/_/n1");
});

test("parses every formatted key", () => {
  fc.assert(
    fc.property(keys, (key) => {
      expect(parseKey(formatKey(key))).toEqual(key);
    }),
  );
});

const keyTexts = fc
  .array(
    fc.oneof(fc.constantFrom("_", "", ".", "a.", ".a", "a.b", "a-b", "%5F", "%41", "é"), segment),
    {
      minLength: 4,
      maxLength: 6,
    },
  )
  .map((segments) => segments.join("/"));

test("accepts only the text that the key is formatted to", () => {
  fc.assert(
    fc.property(keyTexts, (text) => {
      let key: ObjectKey;
      try {
        key = parseKey(text);
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_key" });
        return;
      }
      expect(formatKey(key)).toBe(text);
    }),
    { numRuns: 2_000 },
  );
});

test("different keys have different texts", () => {
  const same = (left: ObjectKey, right: ObjectKey) =>
    JSON.stringify(Object.entries(left).toSorted()) ===
    JSON.stringify(Object.entries(right).toSorted());
  fc.assert(
    fc.property(keys, keys, (left, right) => {
      expect(formatKey(left) === formatKey(right)).toBe(same(left, right));
    }),
  );
});

test("a namespace named _ differs from no namespace", () => {
  const { namespace: _, ...clusterScoped } = pool;
  expect(formatKey({ ...pool, namespace: "_" })).not.toBe(formatKey(clusterScoped));
});

test("keys differ by kind and group", () => {
  const base = { controller: "c", cluster: "default", namespace: "ns", name: "web" };
  const texts = [
    { ...base, resource: "configmaps", group: "" },
    { ...base, resource: "deployments", group: "apps" },
    { ...base, resource: "deployments", group: "extensions" },
  ].map(formatKey);
  expect(new Set(texts).size).toBe(3);
});

test.each(["controller", "cluster", "resource", "namespace", "name"])(
  "rejects an empty %s by name",
  (field) => {
    expect(() => formatKey({ ...pool, [field]: "" })).toThrow(
      expect.objectContaining({ code: "invalid_key", message: expect.stringContaining(field) }),
    );
  },
);

test.each(["\ud800", "a\udc00b"])("rejects text that is not well-formed: %j", (name) => {
  expect(() => formatKey({ ...pool, name })).toThrow(
    expect.objectContaining({ code: "invalid_key" }),
  );
});

test("rejects a resource with a dot, which would be parsed as its group", () => {
  expect(() => formatKey({ ...pool, resource: "nodepools.demo" })).toThrow(
    /pass its group separately/,
  );
});

test.each([
  ["too few segments", "a/b/c/d"],
  ["too many segments", "a/b/c/d/e/f"],
  ["an empty segment", "a/b/c//e"],
  ["no resource before the group", "a/b/.apps/_/e"],
  ["broken percent-encoding", "a/b/c/_/%zz"],
  ["an encoded lone surrogate", "a/b/c/_/%ED%A0%80"],
  ["a second text for the same key", "a/b/c/_/%65"],
  ["a dot without a group", "a/b/c./_/e"],
])("rejects %s", (_why, text) => {
  expect(() => parseKey(text)).toThrow(expect.objectContaining({ code: "invalid_key" }));
});
