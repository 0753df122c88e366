import { defined } from "@konverge/core";
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

test("a spec with defaults for all fields has a default; any other is required", () => {
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

test("requires no status fields except the keys of lists by type", () => {
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

test("omits keywords that a structural schema must not have", () => {
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

test("derives English plurals unless one is set", () => {
  const plural = (kind: string, given?: string) =>
    defineResource({
      ...group,
      kind,
      spec: z.object({}),
      ...defined({ plural: given }),
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
    new RegExp(`${field} ".*" is invalid`),
  );
});

const spec = z.object({ replicas: z.int(), since: z.string().meta({ format: "date-time" }) });

test("sets names, columns and versions: one storage version, the main one served, column types from the schema", () => {
  const resource = defineResource({
    ...group,
    kind: "NodePool",
    singular: "pool",
    shortNames: ["np"],
    categories: ["all"],
    scope: "Cluster",
    spec,
    status: z.object({ conditions }),
    printerColumns: [
      { name: "Replicas", path: ".spec.replicas" },
      { name: "Since", path: ".spec.since", priority: 1 },
      { name: "Ready", path: '.status.conditions[?(@.type=="Ready")].status' },
      { name: "Age", path: ".metadata.creationTimestamp" },
    ],
    versions: [
      { version: "v1beta1", spec, served: false },
      { version: "v1alpha1", spec, deprecated: "use v1" },
    ],
    storage: "v1beta1",
  });
  expect(resource.crd().spec).toMatchObject({
    scope: "Cluster",
    names: { singular: "pool", shortNames: ["np"], categories: ["all"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: false,
        additionalPrinterColumns: [
          { name: "Replicas", jsonPath: ".spec.replicas", type: "integer" },
          { name: "Since", type: "date", priority: 1 },
          { name: "Ready", type: "string" },
          { name: "Age", type: "date" },
        ],
      },
      { name: "v1beta1", served: false, storage: true },
      { name: "v1alpha1", deprecated: true, deprecationWarning: "use v1", storage: false },
    ],
  });
});

const listOf = (items: z.ZodType, meta: object) => ({
  spec: z.object({ list: z.array(items).meta({ ...meta }) }),
});
const map = (...keys: string[]) => ({
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": keys,
});
test.each([
  ["conversion", { conversion: "webhook" }, /conversion "webhook" is not supported/],
  ["storage", { storage: "v2" }, /storage "v2" is not one of its versions: v1/],
  ["a version twice", { versions: [{ version: "v1", spec }] }, /version v1 is defined twice/],
  ["a short name", { shortNames: ["NP"] }, /name "NP" is invalid/],
  ["a column", { printerColumns: [{ name: "X", path: ".spec.replica" }] }, /no \.spec\.replica$/],
  [
    "a column of an object",
    { printerColumns: [{ name: "X", path: ".spec" }] },
    /not a single value/,
  ],
  ["a set of objects", listOf(z.object({}), { "x-kubernetes-list-type": "set" }), /need a map/],
  [
    "a list type",
    listOf(z.string(), { "x-kubernetes-list-type": "bag" }),
    /write atomic, set or map/,
  ],
  ["map keys without a map", listOf(z.object({}), { "x-kubernetes-list-map-keys": ["a"] }), /need/],
  [
    "a map without keys",
    listOf(z.object({}), { "x-kubernetes-list-type": "map" }),
    /needs its keys/,
  ],
  ["a map key that is not there", listOf(z.object({}), map("name")), /key "name", which must be a/],
  ["an optional map key", listOf(z.object({ a: z.string().optional() }), map("a")), /required or/],
])("refuses a wrong %s", (_what, wrong, message) => {
  const definition = { ...group, kind: "Good", spec, ...wrong } as typeof group & {
    readonly kind: string;
    readonly spec: z.ZodType;
  };
  expect(() => defineResource(definition)).toThrow(message);
});

test("omits unknown metadata and keeps that of the API server", () => {
  const resource = defineResource({
    ...group,
    kind: "Marked",
    spec: z.object({
      names: z.array(z.string()).meta({ "x-kubernetes-list-type": "set", team: "blue" }),
    }),
  });
  expect(schemaOf(resource).properties["spec"]).toMatchObject({
    properties: { names: { type: "array", "x-kubernetes-list-type": "set" } },
  });
  expect(JSON.stringify(resource.crd())).not.toContain("team");
});

test("the enum of a nullable value is in allOf, so that the API server accepts null", () => {
  const schema = z.object({ phase: z.enum(["a", "b"]).nullable() });
  const names = { group: "example.com", version: "v1", kind: "Thing" };
  const crd = defineResource({ ...names, spec: schema }).crd();
  const [version] = crd.spec["versions"] as { schema: { openAPIV3Schema: unknown } }[];
  expect(version?.schema.openAPIV3Schema).toMatchObject({
    properties: {
      spec: {
        properties: { phase: { type: "string", nullable: true, allOf: [{ enum: ["a", "b"] }] } },
      },
    },
  });
});
