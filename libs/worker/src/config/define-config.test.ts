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

test("a configuration of controllers alone has one cluster named default", () => {
  expect(defineConfig({ controllers: [controller] })).toEqual({
    controllers: [controller],
    workflows: [],
    schedules: [],
    clusters: { default: {} },
    settings: {},
    use: [],
  });
});

test("schedules are what defineSchedule returned, each with a name of its own", () => {
  const workflow = defineWorkflow("report", { version: 1 }, async () => null);
  const nightly = defineSchedule("nightly", { cron: "0 3 * * *", workflow, input: null });
  const workflows = [workflow];
  expect(defineConfig({ workflows, schedules: [nightly] }).schedules).toEqual([nightly]);
  expect(detailsOf({ workflows, schedules: [nightly, nightly] })).toEqual([
    'schedules: several are named "nightly"; give each its own name',
  ]);
  expect(detailsOf({ workflows, schedules: [{ name: "nightly", cron: "0 3 * * *" }] })).toEqual([
    "schedules: write a list of what defineSchedule returned",
  ]);
});

test("everything that is wrong is told at once, by the key that was written", () => {
  const config = {
    controllers: [controller, controller],
    clusters: { a: { rate: -1 } },
    settings: { logLevel: "loud", prefx: "x" },
    cluster: {},
  };
  expect(detailsOf(config)).toEqual([
    "cluster: is not known; known are controllers, workflows, schedules, clusters, settings, use",
    'controllers: several are named "a"; give each its own name',
    "clusters.a.rate: is -1; write calls per second from 0.001 to 100000",
    expect.stringMatching(/^settings\.logLevel: /),
    "settings.prefx: is not a setting; see docs/configuration.md",
  ]);
  expect(detailsOf({ controllers: [] })).toEqual(["controllers: write at least one, or workflows"]);
  expect(detailsOf({ controllers: [controller], clusters: {} })).toEqual([
    "clusters: write at least one, or leave it out for one named default",
  ]);
});

test("workflows may stand alone, each under a name of its own", () => {
  const workflow = defineWorkflow("roll", { version: 1 }, async () => null);
  const alone = defineConfig({ workflows: [workflow] });
  expect(alone).toMatchObject({ controllers: [], workflows: [workflow] });
  expect(detailsOf({ workflows: [workflow, workflow] })).toEqual([
    'workflows: several are named "roll"; give each its own name',
  ]);
  expect(detailsOf({ controllers: [controller], workflows: [async () => null] })).toEqual([
    "workflows: write a list of what defineWorkflow returned",
  ]);
});
