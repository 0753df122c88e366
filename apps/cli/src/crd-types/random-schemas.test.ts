import { randomInt } from "node:crypto";
import type { JsonValue } from "@konverge/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compileTypes } from "../../../../test/support/compile-types.ts";
import type { CrdSchema } from "./crd-schema.ts";
import { makeTypeFile } from "./make-type-file.ts";

const SCHEMAS = 200;
const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));

/** A schema with a value that it allows, and one that it rejects if there is one. */
interface Sample {
  readonly schema: CrdSchema;
  readonly valid: JsonValue;
  readonly invalid?: JsonValue;
}

// No name of Object.prototype: TypeScript rejects objects that lack such an optional field.
const names = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 6 }),
    fc.constantFrom("new", "a-b", "1", "readonly", "*/", "$ref"),
  )
  // In a literal this name sets the prototype.
  .filter((name) => name !== "__proto__");
const sampleOf = (schema: CrdSchema, valid: JsonValue, invalid: JsonValue): Sample => ({
  schema,
  valid,
  invalid,
});
const intOrString = { "x-kubernetes-int-or-string": true };

const leaves: fc.Arbitrary<Sample> = fc.oneof(
  fc.string().map((text) => sampleOf({ type: "string" }, text, 1)),
  fc.integer().map((number) => sampleOf({ type: "integer" }, number, "1")),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((number) => sampleOf({ type: "number" }, number, "1")),
  fc.boolean().map((is) => sampleOf({ type: "boolean" }, is, 0)),
  fc.oneof(fc.integer(), fc.string()).map((value) => sampleOf(intOrString, value, true)),
  fc
    .uniqueArray(fc.string(), { minLength: 1, maxLength: 12 })
    .map((texts) =>
      sampleOf({ type: "string", enum: texts }, texts.at(-1) ?? "", `${texts.join("")}x`),
    ),
  fc.constant(sampleOf({ type: "object" }, {}, { a: 1 })),
  fc
    .jsonValue({ maxDepth: 2 })
    .filter(hasPlainNames)
    .map((valid) => ({
      schema: { "x-kubernetes-preserve-unknown-fields": true },
      valid: valid as JsonValue,
    })),
);

function hasPlainNames(value: unknown): boolean {
  return !JSON.stringify(value).includes("__proto__");
}

const { sample: samples } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc
    .tuple(
      fc.oneof(
        { maxDepth: 4, depthSize: "small" },
        leaves,
        tie("sample").map(listOf),
        fc.tuple(names, tie("sample")).map(mapOf),
        fc
          .record({
            fields: fc.dictionary(
              names,
              fc.record({
                sample: tie("sample"),
                isRequired: fc.boolean(),
                isPresent: fc.boolean(),
              }),
              { maxKeys: 4, noNullPrototype: true },
            ),
            keepsUnknown: fc.boolean(),
          })
          .map(objectOf),
        fc.tuple(names, tie("sample")).map(embeddedOf),
      ),
      fc.boolean(),
      fc.option(fc.string({ unit: "binary", maxLength: 150 }), { nil: undefined }),
    )
    .map(([sample, isNull, description]) => describedAs(nullableIf(sample, isNull), description)),
}));

function listOf({ schema, valid, ...rest }: Sample): Sample {
  const invalid = "invalid" in rest ? [valid, rest.invalid ?? null] : {};
  return { schema: { type: "array", items: schema }, valid: [valid, valid], invalid };
}

function mapOf([name, { schema, valid, ...rest }]: [string, Sample]): Sample {
  const invalid = "invalid" in rest ? { [name]: rest.invalid ?? null } : 1;
  return {
    schema: { type: "object", additionalProperties: schema },
    valid: { [name]: valid },
    invalid,
  };
}

interface Fields {
  readonly fields: Readonly<
    Record<string, { sample: Sample; isRequired: boolean; isPresent: boolean }>
  >;
  readonly keepsUnknown: boolean;
}

function objectOf({ fields, keepsUnknown }: Fields): Sample {
  const entries = Object.entries(fields);
  if (entries.length === 0) return sampleOf({ type: "object" }, {}, { a: 1 });
  const required = entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name);
  const valid = Object.fromEntries(
    entries
      .filter(([, { isRequired, isPresent }]) => isRequired || isPresent)
      .map(([name, { sample }]) => [name, sample.valid]),
  );
  const wrong = entries.find(([, { sample }]) => "invalid" in sample);
  const [missing] = required;
  const { [missing ?? ""]: _, ...incomplete } = valid;
  return {
    schema: {
      type: "object",
      properties: Object.fromEntries(entries.map(([name, { sample }]) => [name, sample.schema])),
      ...(required.length > 0 ? { required } : {}),
      ...(keepsUnknown ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
    },
    valid,
    invalid:
      missing !== undefined
        ? incomplete
        : wrong === undefined
          ? 1
          : { ...valid, [wrong[0]]: wrong[1].sample.invalid ?? null },
  };
}

function embeddedOf([name, { schema, valid }]: [string, Sample]): Sample {
  const spec = { [name]: valid };
  const metadata = { name: "a", labels: { b: "c" } };
  return {
    schema: {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      properties: {
        kind: { type: "string" },
        spec: { type: "object", properties: { [name]: schema } },
      },
    },
    valid: { apiVersion: "v1", kind: "A", metadata, spec },
    invalid: { kind: "A", metadata, spec },
  };
}

function nullableIf(sample: Sample, isNull: boolean): Sample {
  if (!isNull) return sample;
  const { schema } = sample;
  const { enum: values, ...rest } = schema;
  const rule = values === undefined ? {} : { allOf: [{ enum: values }] };
  return { ...sample, schema: { ...rest, ...rule, nullable: true }, valid: null };
}

function describedAs(sample: Sample, description: string | undefined): Sample {
  if (description === undefined) return sample;
  return { ...sample, schema: { ...sample.schema, description, default: description } };
}

const oneLine = (value: JsonValue): string =>
  JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

test(`types of random schemas accept valid values and reject others, seed ${seed}`, async () => {
  const modules: Record<string, string> = {};
  const drawn = fc.sample(samples, { seed, numRuns: SCHEMAS });
  for (const [index, sample] of drawn.entries()) {
    const { schema: spec, valid } = sample;
    const kind = {
      group: "example.com",
      version: "v1",
      kind: "Thing",
      resource: "things",
      scope: "Namespaced",
      schema: { type: "object", required: ["spec"], properties: { spec } },
    } as const;
    const values = [`\nexport const valid: Thing["spec"] = ${oneLine(valid)};`];
    if ("invalid" in sample) {
      values.push(
        "// @ts-expect-error",
        `export const invalid: Thing["spec"] = ${oneLine(sample.invalid ?? null)};\n`,
      );
    }
    modules[`thing${index}`] = makeTypeFile([kind], "konverge types x.yaml") + values.join("\n");
  }
  expect(drawn.filter((sample) => "invalid" in sample).length).toBeGreaterThan(SCHEMAS / 2);
  expect(await compileTypes(modules)).toBe("");
});
