import type { JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineResource } from "./define-resource.ts";
import { immutable, rule } from "./rule.ts";

const group = { group: "test.konverge.dev", version: "v1", kind: "Thing" };
const specOf = (spec: z.ZodType): JsonObject => {
  const versions = defineResource({ ...group, spec }).crd().spec["versions"] as {
    readonly schema: {
      readonly openAPIV3Schema: { readonly properties: Readonly<Record<string, JsonObject>> };
    };
  }[];
  return versions[0]?.schema.openAPIV3Schema.properties["spec"] ?? {};
};
const rulesOf = (schema: unknown) =>
  (schema as { readonly "x-kubernetes-validations"?: unknown })["x-kubernetes-validations"];

test("writes rules next to their fields, in order", () => {
  const spec = z
    .object({
      min: z.int(),
      max: z.int(),
      size: z.string().check(immutable()),
      zones: z.array(z.string()).check(rule("self.size() > 0")).default(["a"]),
      note: z.string().check(rule("self != 'x'")).optional().check(rule("self != 'y'")),
    })
    .check(
      rule("self.min <= self.max", { message: "min must not exceed max", fieldPath: ".min" }),
      rule("self.max < 10", "max must be below 10"),
    );
  const schema = specOf(spec) as { readonly properties: Record<string, unknown> };
  expect(rulesOf(schema)).toEqual([
    { rule: "self.min <= self.max", message: "min must not exceed max", fieldPath: ".min" },
    { rule: "self.max < 10", message: "max must be below 10" },
  ]);
  expect(rulesOf(schema.properties["size"])).toEqual([
    { rule: "self == oldSelf", message: "field is immutable" },
  ]);
  expect(rulesOf(schema.properties["zones"])).toEqual([{ rule: "self.size() > 0" }]);
  expect(rulesOf(schema.properties["note"])).toEqual([
    { rule: "self != 'x'" },
    { rule: "self != 'y'" },
  ]);
  expect(rulesOf(schema.properties["min"])).toBeUndefined();
});

test("does not run rules in zod, and keeps other metadata", () => {
  const schema = z.object({ a: z.int() }).check(rule("self.a > 5")).describe("A thing.");
  expect(schema.safeParse({ a: 1 }).success).toBe(true);
  expect(specOf(schema)).toMatchObject({
    description: "A thing.",
    "x-kubernetes-validations": [{ rule: "self.a > 5" }],
  });
});

test.each([
  ["a syntax error", z.object({ a: z.int() }).check(rule("self.a <")), /^Thing\.spec .*<input>:1:/],
  [
    "an unknown field",
    z.object({ list: z.array(z.object({ a: z.int() }).check(rule("self.b > 1"))) }),
    /^Thing\.spec\.list\[\] .*<input>:1:5: undefined field 'b'/,
  ],
  [
    "a wrong type",
    z.object({ m: z.record(z.string(), z.int().check(rule("self.startsWith('a')"))) }),
    /^Thing\.spec\.m\.\* .*found no matching overload for 'startsWith' applied to 'int\.\(string\)'/,
  ],
  [
    "a rule without a bool",
    z.object({ a: z.int().check(rule("self")) }),
    /must evaluate to a bool/,
  ],
  [
    "a wrong messageExpression",
    z.object({ a: z.int().check(rule("self > 1", { messageExpression: "1" })) }),
    /messageExpression must evaluate to a string \(x-kubernetes-validations\[0\]\.messageExpression\)/,
  ],
  [
    "an unknown fieldPath",
    z.object({ a: z.int() }).check(rule("self.a > 1", { fieldPath: ".b" })),
    /must be a valid path/,
  ],
  [
    "oldSelf where items have no earlier value",
    z.object({ list: z.array(z.string().check(immutable())) }),
    /^Thing\.spec\.list\[\] .*uncorrelatable/,
  ],
  [
    "optionalOldSelf without oldSelf",
    z.object({ a: z.int().check(rule("self > 1", { optionalOldSelf: true })) }),
    /may not be set if oldSelf is not used/,
  ],
])("rejects %s, naming the field and the position", (_what, spec, message) => {
  expect(() => specOf(spec)).toThrow(
    expect.objectContaining({
      code: "invalid_config",
      message: expect.stringMatching(message) as string,
    }),
  );
});

test("accepts unknown functions, which newer API servers may have", () => {
  expect(rulesOf(specOf(z.object({ a: z.int() }).check(rule("frobnicate(self.a)"))))).toEqual([
    { rule: "frobnicate(self.a)" },
  ]);
});

test("a schema that would lose its rules cannot be extended", () => {
  const schema = z.object({ a: z.int() }).check(rule("self.a > 5"));
  expect(() => schema.extend({ b: z.int(), a: z.string() })).toThrow(/safeExtend/);
  expect(rulesOf(specOf(schema.safeExtend({ b: z.int() })))).toEqual([{ rule: "self.a > 5" }]);
});
