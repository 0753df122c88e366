import { defineResource } from "@konverge/engine";
import { expect, test } from "vitest";
import { z } from "zod";
import { keywords } from "./keywords.ts";

const labels = z.record(z.string(), z.string()).check(keywords({ maxProperties: 1 }));
const spec = z
  .object({
    labels: labels.optional(),
    zones: z.array(z.string()).check(keywords({ "x-kubernetes-list-type": "set" })),
    address: z.union([z.int(), z.string()]).check(keywords({ pattern: "^[[:alpha:]]/" })),
    a: z.int().optional(),
    b: z.int().optional(),
  })
  .check(keywords({ oneOf: [{ required: ["a"] }, { required: ["b"] }] }));

test("keywords are part of the CRD", () => {
  const thing = defineResource({ group: "example.com", version: "v1", kind: "Thing", spec });
  const [version] = thing.crd().spec["versions"] as { schema: { openAPIV3Schema: unknown } }[];
  expect(version?.schema.openAPIV3Schema).toMatchObject({
    properties: {
      spec: {
        oneOf: [{ required: ["a"] }, { required: ["b"] }],
        properties: {
          labels: { maxProperties: 1, additionalProperties: { type: "string" } },
          zones: { "x-kubernetes-list-type": "set", items: { type: "string" } },
          address: { "x-kubernetes-int-or-string": true, pattern: "^[[:alpha:]]/" },
        },
      },
    },
  });
});

test.each([
  [{ zones: [], address: 1, a: 1 }, []],
  [{ zones: ["x", "x"], address: 1, a: 1 }, ['value[1]: Duplicate value: "x"']],
  [{ zones: [], address: "a", a: 1 }, [expect.stringContaining("should match '^[[:alpha:]]/'")]],
  [
    { zones: [], address: "b/c", a: 1, labels: { a: "", b: "" } },
    [expect.stringContaining("Too many: 2: must have at most 1 item")],
  ],
  [
    { zones: [], address: 1, a: 1, b: 1 },
    [expect.stringContaining("must validate one and only one schema (oneOf). Found 2 valid")],
  ],
])("parse checks keywords as the API server does: %j", (value, messages) => {
  const { error } = spec.safeParse(value);
  expect((error?.issues ?? []).map(({ message }) => message)).toEqual(messages);
});
