import { expect, test } from "vitest";
import { z } from "zod";
import { conditions, defineResource } from "./define-resource.ts";

const define = (spec: z.ZodType) =>
  defineResource({ group: "test.konverge.dev", version: "v1", kind: "Thing", spec }).crd();
let calls = 0;

test.for<readonly [title: string, spec: z.ZodType, says: string]>([
  [
    "transform",
    z.object({ name: z.string().transform((text) => text.length) }),
    "spec.name has a transform",
  ],
  [
    "preprocess",
    z.object({ list: z.array(z.preprocess(Number, z.number())) }),
    "spec.list[] has a transform, preprocess",
  ],
  [
    "refine of the whole",
    z.object({ min: z.int(), max: z.int() }).refine(({ min, max }) => min <= max),
    '.check(rule("self.min <= self.max"',
  ],
  [
    "refine of an optional field of a union",
    z.union([
      z.object({ a: z.string() }),
      z.object({ b: z.optional(z.string().refine((text) => text !== "x")) }),
    ]),
    "spec.b has a refine",
  ],
  [
    "superRefine",
    z.object({
      of: z.record(
        z.string(),
        z.string().superRefine(() => undefined),
      ),
    }),
    "spec.of.* has a refine, superRefine",
  ],
  ["custom", z.object({ any: z.custom<string>() }), "spec.any is a custom"],
  ["trim", z.object({ name: z.string().trim() }), "spec.name changes its value (trim"],
  ["catch", z.object({ n: z.int().catch(1) }), "spec.n has a catch"],
  ["lazy", z.object({ n: z.lazy(() => z.int().catch(1)) }), "spec.n has"],
  [
    "random default",
    z.object({ id: z.string().default(() => crypto.randomUUID()) }),
    "spec.id has a default that differs from call to call",
  ],
  [
    "default by the clock",
    z.object({ at: z.string().default(() => new Date().toISOString()) }),
    "spec.at has a default",
  ],
  [
    "counting default",
    z.object({ n: z.int().default(() => (calls += 1)) }),
    "spec.n has a default",
  ],
])("rejects a rule that nothing would run: %s", ([, spec, says]) => {
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
