import { expect, test } from "vitest";
import { z } from "zod";
import { conditions, defineResource } from "./define-resource.ts";

const define = (spec: z.ZodType) =>
  defineResource({ group: "test.konverge.dev", version: "v1", kind: "Thing", spec }).crd();
let calls = 0;

test.each<{ title: string; spec: z.ZodType; says: string }>([
  {
    title: "transform",
    spec: z.object({ name: z.string().transform((text) => text.length) }),
    says: "spec.name has a transform",
  },
  {
    title: "preprocess",
    spec: z.object({ list: z.array(z.preprocess(Number, z.number())) }),
    says: "spec.list[] has a transform, preprocess",
  },
  {
    title: "refine of the whole",
    spec: z.object({ min: z.int(), max: z.int() }).refine(({ min, max }) => min <= max),
    says: '.check(rule("self.min <= self.max"',
  },
  {
    title: "refine of an optional field of a union",
    spec: z.union([
      z.object({ a: z.string() }),
      z.object({ b: z.optional(z.string().refine((text) => text !== "x")) }),
    ]),
    says: "spec.b has a refine",
  },
  {
    title: "superRefine",
    spec: z.object({
      of: z.record(
        z.string(),
        z.string().superRefine(() => undefined),
      ),
    }),
    says: "spec.of.* has a refine, superRefine",
  },
  { title: "custom", spec: z.object({ any: z.custom<string>() }), says: "spec.any is a custom" },
  {
    title: "trim",
    spec: z.object({ name: z.string().trim() }),
    says: "spec.name changes its value (trim",
  },
  { title: "catch", spec: z.object({ n: z.int().catch(1) }), says: "spec.n has a catch" },
  { title: "lazy", spec: z.object({ n: z.lazy(() => z.int().catch(1)) }), says: "spec.n has" },
  {
    title: "random default",
    spec: z.object({ id: z.string().default(() => crypto.randomUUID()) }),
    says: "spec.id has a default that differs from call to call",
  },
  {
    title: "default by the clock",
    spec: z.object({ at: z.string().default(() => new Date().toISOString()) }),
    says: "spec.at has a default",
  },
  {
    title: "counting default",
    spec: z.object({ n: z.int().default(() => (calls += 1)) }),
    says: "spec.n has a default",
  },
])("rejects a rule that nothing would run: $title", ({ spec, says }) => {
  expect(() => define(spec)).toThrow(
    expect.objectContaining({ code: "invalid_config", message: expect.stringContaining(says) }),
  );
});

test("accepts constant defaults, formats, and rules in CEL", () => {
  const spec = z
    .object({
      min: z.int().default(0),
      max: z.int().default(() => 5),
      labels: z.record(z.string(), z.string()).default({ app: "x" }),
      at: z.iso.datetime().optional(),
      mail: z.email().regex(/@example/),
      conditions,
    })
    .meta({ "x-kubernetes-validations": [{ rule: "self.min <= self.max" }] });
  const [version] = define(spec).spec["versions"] as { schema: unknown }[];
  expect(version?.schema).toMatchObject({
    openAPIV3Schema: {
      properties: {
        spec: {
          "x-kubernetes-validations": [{ rule: "self.min <= self.max" }],
          properties: { min: { default: 0 }, max: { default: 5 } },
        },
      },
    },
  });
});
