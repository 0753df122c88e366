import type { JsonObject } from "@konverge/core";
import type { Case, SendStep } from "../case.ts";
import { definitions } from "../objects.ts";
import { mergePatch, post, remove } from "../steps.ts";
import { gauge, gauges } from "../rule-objects.ts";

const create = (spec: JsonObject, causes: readonly JsonObject[] = []): SendStep =>
  post(
    `${gauges}${causes.length > 0 ? "?dryRun=All" : ""}`,
    causes.length === 0 ? { code: 201 } : { code: 422, reason: "Invalid", causes },
    gauge(spec),
  );
const patch = (spec: JsonObject, causes: readonly JsonObject[] = []): SendStep =>
  mergePatch(
    `${gauges}/{o}`,
    causes.length === 0 ? { code: 200 } : { code: 422, reason: "Invalid", causes },
    { spec },
  );
const cause = (field: string, message: string, reason = "FieldValueInvalid"): JsonObject => ({
  field,
  message,
  reason,
});

const dry = `POST ${definitions}?dryRun=All`;
const definition = (schema: JsonObject): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "{o}s.rules.konverge.dev" },
  spec: {
    group: "rules.konverge.dev",
    scope: "Cluster",
    names: { plural: "{o}s", kind: "Kind{o}" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", properties: { spec: schema } } },
      },
    ],
  },
});
const withRule = (rule: JsonObject | null): JsonObject =>
  definition({
    type: "object",
    properties: {
      a: { type: "integer" },
      list: { type: "array", maxItems: 3, items: { type: "string", maxLength: 3 } },
    },
    "x-kubernetes-validations": [rule],
  });
const withPatterns = (a: JsonObject, b: JsonObject = { type: "string" }): JsonObject =>
  definition({ type: "object", properties: { a, b } });
const SPEC = "spec.validation.openAPIV3Schema.properties[spec]";
const rejected = (
  rule: JsonObject | null,
  member: string,
  reason = "FieldValueInvalid",
): SendStep => ({
  send: dry,
  body: withRule(rule),
  expect: {
    code: 422,
    reason: "Invalid",
    causes: [{ field: `${SPEC}.x-kubernetes-validations[0].${member}`, reason }],
  },
});
const made = `${definitions}/{o}s.rules.konverge.dev`;
const kinds = "/apis/rules.konverge.dev/v1/{o}s";
const kind = (spec: JsonObject, name = "{o}"): JsonObject => ({
  apiVersion: "rules.konverge.dev/v1",
  kind: "Kind{o}",
  metadata: { name },
  spec,
});

/** Validation rules in CEL. */
export const rules: readonly Case[] = [
  {
    name: "CEL: violated rules are causes, with path, reason and message",
    steps: [
      create({ min: 2, max: 1 }, [cause("spec.min", "Invalid value: min 2 exceeds max 1")]),
      create({ level: 10, ratio: 2 }, [
        cause("spec.level", "Invalid value: 10: failed rule: self < 10"),
        cause("spec.ratio", "Invalid value: 2: failed rule: self * 2.0 <= 3.0"),
      ]),
      create({ reasons: { f: true, r: true, d: true } }, [
        cause("spec.reasons.f", "Forbidden: no f", "FieldValueForbidden"),
        cause("spec.reasons.r", "Required value: failed rule: !has(self.r)", "FieldValueRequired"),
        cause("spec.reasons", "Duplicate value", "FieldValueDuplicate"),
      ]),
      create({ "a-b": 13, namespace: "x" }, [
        cause("spec", "Invalid value: failed rule: !has(self.a__dash__b) || self.a__dash__b != 13"),
        cause(
          "spec",
          "Invalid value: failed rule: !has(self.__namespace__) || self.__namespace__.size() > 1",
        ),
      ]),
      create(
        { ports: [{ name: "a", number: 0 }], steps: [{ n: 1 }, { n: -1 }], limits: { a: 0 } },
        [
          cause("spec.ports[0].number", "Invalid value: 0: must be positive"),
          cause("spec.steps[1].n", "Invalid value: -1: must be positive"),
          cause("spec.limits[a]", "Invalid value: 0: must be positive"),
        ],
      ),
      create({ embedded: { apiVersion: "v1", kind: "Forbidden", metadata: { name: "x" } } }, [
        cause(
          "spec.embedded",
          "Invalid value: failed rule: self.kind != 'Forbidden' && self.metadata.name != 'forbidden'",
        ),
      ]),
      post(
        gauges,
        { code: 422, causes: [cause("<nil>", "Invalid value: the name is taken")] },
        gauge({}, "{o}-bad"),
      ),
      create({ min: 1, max: 2, level: 9, ratio: 1.5, note: null, at: "2024-01-01T00:00:00Z" }),
    ],
  },
  {
    name: "CEL: a rule that cannot be evaluated is a cause",
    steps: [
      create({ max: 7 }, [{ field: "spec", reason: "FieldValueInvalid" }]),
      create({ port: 80, note: "nn" }),
      create({ port: "http" }, [{ field: "spec", reason: "FieldValueInvalid" }]),
      patch({ port: 8080 }, [cause("spec", "Invalid value: high port")]),
    ],
  },
  {
    name: "CEL: rules do not run on objects that the schema rejects",
    steps: [
      create({ min: "2", max: 1 }, [
        { field: "spec.min", reason: "FieldValueTypeInvalid" },
        {
          field: "<nil>",
          message:
            "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        },
      ]),
      create({ size: "longer than ten", level: 10 }, [
        { field: "spec.size", reason: "FieldValueTooLong" },
        { field: "<nil>" },
      ]),
    ],
  },
  {
    name: "CEL: transition rules compare with the replaced value, where there is one",
    steps: [
      create({
        size: "s",
        born: "new",
        tags: ["a", "b"],
        ports: [
          { name: "a", number: 1 },
          { name: "b", number: 5 },
        ],
      }),
      create({ born: "old" }, [cause("spec.born", 'Invalid value: "old": must begin as new')]),
      patch({ born: "old" }),
      patch({ size: "m" }, [cause("spec.size", 'Invalid value: "m": field is immutable')]),
      patch({ tags: ["b", "a"] }),
      patch({ tags: ["b", "c"] }, [cause("spec.tags", "Invalid value: tags are immutable")]),
      patch({ ports: [{ name: "c", number: 1 }, { name: "b", number: 6 }, { name: "a" }] }, [
        { field: "spec.ports[2]", reason: "FieldValueInvalid" },
      ]),
      patch({
        ports: [
          { name: "c", number: 1 },
          { name: "b", number: 6 },
        ],
      }),
      patch({ ports: [{ name: "b", number: 2 }] }, [
        cause("spec.ports[0]", "Invalid value: must not shrink"),
      ]),
      patch({ size: null }),
      patch({ size: "m", free: { a: 1 } }),
      patch({ free: { a: 2 } }, [
        { field: "spec.free", message: "Invalid value: field is immutable" },
      ]),
    ],
  },
  {
    name: "CEL: rules of the status, through its subresource",
    steps: [
      create({ level: 1 }),
      mergePatch(`${gauges}/{o}/status`, 200, { status: { ready: 2 } }),
      mergePatch(
        `${gauges}/{o}/status`,
        {
          code: 422,
          causes: [cause("status.ready", "Invalid value: 1: failed rule: self >= oldSelf")],
        },
        { status: { ready: 1 } },
      ),
      patch({ level: 2 }),
    ],
  },
  {
    name: "CEL: invalid rules are rejected with the definition",
    steps: [
      rejected({ rule: "self.a + self.list" }, "rule"),
      rejected({ rule: "self.b > 1 || self.c.d" }, "rule"),
      rejected({ rule: "self.a" }, "rule"),
      rejected({ rule: " " }, "rule", "FieldValueRequired"),
      rejected(null, "rule", "FieldValueRequired"),
      rejected({ rule: "self.a > 1", message: " " }, "message"),
      rejected({ rule: "self.a\n> 1" }, "message", "FieldValueRequired"),
      rejected({ rule: "self.a > 1", messageExpression: "self.a" }, "messageExpression"),
      rejected({ rule: "self.a > 1", reason: "Odd" }, "reason", "FieldValueNotSupported"),
      rejected({ rule: "self.a > 1", fieldPath: ".b" }, "fieldPath"),
      rejected({ rule: "self.a > 1", optionalOldSelf: true }, "optionalOldSelf"),
      rejected({ rule: "self.list.matches('a')" }, "rule"),
      rejected({ rule: "self.list.all(x, x.matches('['))" }, "rule"),
      {
        send: dry,
        body: definition({
          type: "array",
          maxItems: 3,
          items: {
            type: "string",
            maxLength: 3,
            "x-kubernetes-validations": [{ rule: "self == oldSelf" }],
          },
        }),
        expect: {
          code: 422,
          causes: [{ field: `${SPEC}.items.x-kubernetes-validations[0].rule` }],
        },
      },
      {
        send: dry,
        body: withRule({ rule: "self.a > 1 && self.list.size() < 2" }),
        expect: { code: 201 },
      },
      {
        send: dry,
        body: withRule({
          rule: "self.list.all(x, x.matches('^[\\\\w-.]+$') || x.matches('^{a]}$'))",
        }),
        expect: { code: 201 },
      },
    ],
  },
  {
    name: "CEL: arithmetic that overflows, and patterns that only Go takes literally",
    waits: true,
    steps: [
      create({ namespace: "a-b.c" }),
      create({ namespace: "a b" }, [{ field: "spec.namespace", reason: "FieldValueInvalid" }]),
      post(
        definitions,
        201,
        withRule({
          rule: "self.list.all(x, x.matches('^[\\\\w-.]+$')) && (self.a - 9223372036854775807 - 1) % -1 == 0",
        }),
        { ignore: ["metadata", "status"] },
      ),
      post(`${kinds}?dryRun=All`, 201, kind({ a: 2, list: ["a-.", "b"] }), { retry: true }),
      post(
        `${kinds}?dryRun=All`,
        { code: 422, causes: [{ field: "spec", reason: "FieldValueInvalid" }] },
        kind({ a: 0, list: ["a"] }),
      ),
      remove(made, 200, { ignore: ["metadata", "status"] }),
    ],
  },
  {
    name: "null is in no enum, and combined schemas do not apply to it",
    waits: true,
    steps: [
      {
        send: `POST ${definitions}`,
        body: withPatterns(
          { type: "string", nullable: true, enum: ["red", null] },
          {
            type: "integer",
            nullable: true,
            allOf: [{ enum: [1, 2, 3] }, { maximum: 2 }],
            anyOf: [{ enum: [1] }, { minimum: 2 }],
            oneOf: [{ maximum: 1 }, { minimum: 2 }],
            not: { enum: [0] },
          },
        ),
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
      {
        send: `POST ${kinds}?dryRun=All`,
        body: kind({ a: "red", b: null }),
        retry: true,
        expect: { code: 201 },
      },
      ...[{ a: null }, { a: "null" }, { b: 0 }, { b: 3 }, { b: 4 }].map((spec) => ({
        send: `POST ${kinds}?dryRun=All`,
        body: kind(spec),
        expect: { code: 422 },
      })),
      remove(made, 200, { ignore: ["metadata", "status"] }),
    ],
  },
  {
    name: "patterns of a schema are those of Go, and run in linear time",
    waits: true,
    steps: [
      ...["(", "a**", "(?=a)", "\\C", "[b-a]", "x{2,1}"].map((pattern) => ({
        send: dry,
        body: withPatterns({ type: "string", pattern }),
        expect: { code: 422, causes: [{ field: `${SPEC}.properties[a].pattern` }] },
      })),
      {
        send: dry,
        body: withPatterns({ type: "string", allOf: [{ pattern: "a" }, { pattern: "[a" }] }),
        expect: { code: 422, causes: [{ field: `${SPEC}.properties[a].allOf[1].pattern` }] },
      },
      {
        send: `POST ${definitions}`,
        body: withPatterns(
          { type: "string", pattern: "^(a+)+$" },
          { type: "string", pattern: "^(?i)\\pL\\Q.\\E[\\w-.]+\\z" },
        ),
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
      {
        send: `POST ${kinds}?dryRun=All`,
        body: kind({ a: "aa", b: "É.a-." }),
        retry: true,
        expect: { code: 201 },
      },
      {
        send: `POST ${kinds}?dryRun=All`,
        body: kind({ a: `${"a".repeat(5000)}!`, b: "1.a\n" }),
        expect: { code: 422, causes: [{ field: "spec.a" }, { field: "spec.b" }] },
      },
      { send: `DELETE ${made}`, ignore: ["metadata", "status"], expect: { code: 200 } },
    ],
  },
  {
    name: "CEL: unchanged parts that violate a new rule are only warned about",
    waits: true,
    steps: [
      post(definitions, 201, withRule({ rule: "true" })),
      post(kinds, 201, kind({ a: 5, list: ["x"] }), { retry: true }),
      {
        send: `PATCH ${made}`,
        type: "application/json-patch+json",
        body: [
          {
            op: "replace",
            path: "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations",
            value: [{ rule: "self.a < 5", message: "too large" }],
          },
        ],
        // Times and versions of the definition's conditions.
        ignore: ["metadata", "status"],
        expect: { code: 200 },
      },
      post(
        `${kinds}?dryRun=All`,
        { code: 422, causes: [cause("spec", "Invalid value: too large")] },
        kind({ a: 5 }, "{o}-2"),
        { retry: true },
      ),
      mergePatch(
        `${kinds}/{o}`,
        { code: 200, warnings: ["spec: Invalid value: too large"] },
        { metadata: { labels: { a: "b" } } },
      ),
      mergePatch(
        `${kinds}/{o}`,
        { code: 422, causes: [cause("spec", "Invalid value: too large")] },
        { spec: { list: ["y"] } },
      ),
      remove(made, 200, { ignore: ["metadata", "status"] }),
    ],
  },
];
