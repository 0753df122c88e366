import { isKonvergeError } from "@konverge/core";
import { defineSchedule, defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { defineConfig } from "./define-config.ts";
import { defineController } from "@konverge/engine";

const controller = defineController({
  name: "a",
  for: { group: "", version: "v1", kind: "Thing", resource: "things", scope: "Namespaced" },
  reconcile: async () => undefined,
});

function detailsOf(config: object): readonly string[] {
  try {
    defineConfig(config);
  } catch (error) {
    if (isKonvergeError(error)) return error.issues.map(({ detail }) => detail);
    throw error;
  }
  return [];
}

test("a configuration with controllers only has one cluster named default", () => {
  expect(defineConfig({ controllers: [controller] })).toEqual({
    controllers: [controller],
    workflows: [],
    schedules: [],
    clusters: { default: {} },
    limits: {},
    settings: {},
    use: [],
  });
});

test("accepts schedules of defineSchedule with unique names", () => {
  const workflow = defineWorkflow("report", { version: 1 }, async () => null);
  const nightly = defineSchedule("nightly", { cron: "0 3 * * *", workflow, input: null });
  const workflows = [workflow];
  expect(defineConfig({ workflows, schedules: [nightly] }).schedules).toEqual([nightly]);
  expect(detailsOf({ workflows, schedules: [nightly, nightly] })).toEqual([
    'schedules: duplicate name "nightly"; use unique names',
  ]);
  expect(detailsOf({ workflows, schedules: [{ name: "nightly", cron: "0 3 * * *" }] })).toEqual([
    "schedules: must be a list of results of defineSchedule",
  ]);
});

test("accepts a codec with encode and decode, and a name for stored values", () => {
  const workflows = [defineWorkflow("report", { version: 1 }, async () => null)];
  const codec = { encode: (bytes: Uint8Array) => bytes, decode: (bytes: Uint8Array) => bytes };
  expect(defineConfig({ workflows, codec }).codec).toBe(codec);
  const wrong = [{ ...codec, name: "My codec" }, { encode: codec.encode }, "aes"];
  expect(wrong.flatMap((each) => detailsOf({ workflows, codec: each }))).toEqual([
    'codec: name must be 1 to 63 lower-case letters, digits, dots and dashes (got "My codec")',
    "codec: decode must be a function (bytes, context) => bytes",
    "codec: must be an object with encode and decode",
  ]);
});

test("reports all problems together, by key", () => {
  const config = {
    controllers: [controller, controller],
    clusters: { a: { rate: -1 } },
    settings: { logLevel: "loud", prefx: "x" },
    cluster: {},
  };
  expect(detailsOf(config)).toEqual([
    "cluster: is unknown; valid options: controllers, workflows, schedules, codec, clusters, limits, mutations, notify, settings, use",
    'controllers: duplicate name "a"; use unique names',
    "clusters.a.rate: must be 0.001 to 100000 calls per second (got -1)",
    expect.stringMatching(/^settings\.logLevel: /),
    "settings.prefx: unknown setting; see docs/configuration.md",
  ]);
  expect(detailsOf({ controllers: [] })).toEqual([
    "controllers: must have at least one controller, or set workflows",
  ]);
  expect(detailsOf({ controllers: [controller], clusters: {} })).toEqual([
    "clusters: must have at least one cluster; omit it for one named default",
  ]);
});

test("accepts workflows without controllers, with unique names", () => {
  const workflow = defineWorkflow("roll", { version: 1 }, async () => null);
  const alone = defineConfig({ workflows: [workflow] });
  expect(alone).toMatchObject({ controllers: [], workflows: [workflow] });
  expect(detailsOf({ workflows: [workflow, workflow] })).toEqual([
    'workflows: duplicate name "roll"; use unique names',
  ]);
  expect(detailsOf({ controllers: [controller], workflows: [async () => null] })).toEqual([
    "workflows: must be a list of results of defineWorkflow",
  ]);
});
