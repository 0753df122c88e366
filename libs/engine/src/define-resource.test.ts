import { expect, test } from "vitest";
import { z } from "zod";
import { conditions, defineResource } from "./define-resource.ts";

const schemaOf = (resource: { crd(): { spec: object } }) => {
  const [version] = (resource.crd().spec as { versions: { schema: { openAPIV3Schema: object } }[] })
    .versions;
  return (version?.schema.openAPIV3Schema ?? {}) as {
    properties: Record<string, Record<string, unknown>>;
    required?: string[];
  };
};
const group = { group: "test.konverge.dev", version: "v1" };

test("a spec whose fields all have defaults defaults itself; others are required", () => {
  const pool = defineResource({
    ...group,
    kind: "NodePool",
    spec: z.object({ replicas: z.int().min(0).default(1) }),
  });
  expect(schemaOf(pool).properties["spec"]).toMatchObject({
    type: "object",
    default: {},
    properties: { replicas: { type: "integer", minimum: 0, default: 1 } },
  });
  expect(schemaOf(pool).required).toBeUndefined();
  const strict = defineResource({ ...group, kind: "Strict", spec: z.object({ name: z.string() }) });
  expect(schemaOf(strict).required).toEqual(["spec"]);
  expect(schemaOf(strict).properties["spec"]).toMatchObject({ required: ["name"] });
});

test("in a status nothing is required, but the keys of a list by type are", () => {
  const resource = defineResource({
    ...group,
    kind: "Thing",
    spec: z.object({}),
    status: z.object({ count: z.int(), nested: z.object({ a: z.string() }), conditions }),
  });
  const status = schemaOf(resource).properties["status"] as {
    required?: string[];
    properties: Record<string, Record<string, unknown>>;
  };
  expect(status.required).toBeUndefined();
  expect(status.properties["nested"]).not.toHaveProperty("required");
  expect(status.properties["conditions"]).toMatchObject({
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    items: { required: expect.arrayContaining(["type"]) },
  });
  expect(resource.crd().spec["versions"]).toMatchObject([{ subresources: { status: {} } }]);
});

test("what a structural schema must not have is left out", () => {
  const spec = z.strictObject({
    plain: z.string().meta({ examples: ["a"], id: "Plain" }),
    anything: z.unknown(),
    map: z.record(z.string(), z.string()),
    port: z.union([z.int(), z.string()]),
    mode: z.union([z.literal("a"), z.literal("b")]),
  });
  const schema = schemaOf(defineResource({ ...group, kind: "Plain", spec })).properties["spec"];
  expect(JSON.stringify(schema)).not.toMatch(
    /\$schema|\$ref|examples|"additionalProperties":false/,
  );
  expect(schema).toMatchObject({
    properties: {
      plain: { type: "string" },
      anything: { "x-kubernetes-preserve-unknown-fields": true },
      map: { type: "object", additionalProperties: { type: "string" } },
      port: { "x-kubernetes-int-or-string": true },
      mode: { type: "string", enum: ["a", "b"] },
    },
  });
});

test.each([
  ["a date", z.object({ at: z.date() })],
  ["a bigint", z.object({ n: z.bigint() })],
  ["a tuple", z.object({ pair: z.tuple([z.string(), z.int()]) })],
  ["a union of object and string", z.object({ u: z.union([z.string(), z.object({})]) })],
  ["a pattern with look-around", z.object({ p: z.string().regex(/(?=a)b/) })],
])("refuses %s, naming the field", (_what, spec) => {
  expect(() => defineResource({ ...group, kind: "Bad", spec })).toThrow(/^Bad\.spec/);
});

test("plurals follow English, or what is said", () => {
  const plural = (kind: string, given?: string) =>
    defineResource({
      ...group,
      kind,
      spec: z.object({}),
      ...(given === undefined ? {} : { plural: given }),
    }).resource;
  expect(["NodePool", "Policy", "Box", "Gateway"].map((kind) => plural(kind))).toEqual([
    "nodepools",
    "policies",
    "boxes",
    "gateways",
  ]);
  expect(plural("Index", "indices")).toBe("indices");
});

test.each([
  ["group", { group: "nodots" }],
  ["version", { version: "1" }],
  ["kind", { kind: "lower" }],
])("refuses a wrong %s", (field, wrong) => {
  expect(() => defineResource({ ...group, kind: "Good", spec: z.object({}), ...wrong })).toThrow(
    new RegExp(`${field} ".*" is not valid`),
  );
});
