import { isKonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { defineConfig, type ConfigInput } from "./define-config.ts";
import { defineController } from "./define-controller.ts";

const controller = defineController({
  name: "a",
  for: { group: "", version: "v1", kind: "Thing", resource: "things", scope: "Namespaced" },
  reconcile: async () => undefined,
});

function detailsOf(config: object): readonly string[] {
  try {
    defineConfig(config as ConfigInput);
  } catch (error) {
    if (isKonvergeError(error)) return error.issues.map(({ detail }) => detail);
    throw error;
  }
  return [];
}

test("a configuration of controllers alone has one cluster named default", () => {
  expect(defineConfig({ controllers: [controller] })).toEqual({
    controllers: [controller],
    clusters: { default: {} },
    settings: {},
    use: [],
  });
});

test("everything that is wrong is told at once, by the key that was written", () => {
  const config = {
    controllers: [controller, controller],
    clusters: { a: { rate: -1 } },
    settings: { logLevel: "loud", prefx: "x" },
    cluster: {},
  };
  expect(detailsOf(config)).toEqual([
    "cluster: is not known; known are controllers, clusters, settings, use",
    'controllers: several are named "a"; give each its own name',
    "clusters.a.rate: is -1; write calls per second from 0.001 to 100000",
    expect.stringMatching(/^settings\.logLevel: /),
    "settings.prefx: is not a setting; see docs/configuration.md",
  ]);
  expect(detailsOf({ controllers: [] })).toEqual(["controllers: write a list of at least one"]);
  expect(detailsOf({ controllers: [controller], clusters: {} })).toEqual([
    "clusters: write at least one, or leave it out for one named default",
  ]);
});
