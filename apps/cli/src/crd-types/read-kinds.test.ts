import type { JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import { readKinds } from "./read-kinds.ts";

const schema = { openAPIV3Schema: { type: "object" } };
const version = (name: string, fields: JsonObject = {}): JsonObject => ({
  name,
  served: true,
  storage: false,
  schema,
  ...fields,
});
const crdOf = (group: string, kind: string, versions: JsonObject[]): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${kind.toLowerCase()}s.${group}` },
  spec: { group, scope: "Cluster", names: { kind, plural: `${kind.toLowerCase()}s` }, versions },
});
const stored = version("v1", { storage: true });
const crds = [
  crdOf("b.com", "Pipe", [version("v1beta1"), stored]),
  crdOf("a.com", "Tap", [stored, version("v0", { served: false })]),
];

test("the storage version of all kinds, sorted by group and kind", () => {
  expect(readKinds(crds)).toEqual([
    {
      group: "a.com",
      version: "v1",
      kind: "Tap",
      resource: "taps",
      scope: "Cluster",
      schema: { type: "object" },
    },
    {
      group: "b.com",
      version: "v1",
      kind: "Pipe",
      resource: "pipes",
      scope: "Cluster",
      schema: { type: "object" },
    },
  ]);
});

test("a group, a kind and a version are selected", () => {
  const [pipe, ...others] = readKinds(crds, { group: "b.com", apiVersion: "v1beta1" });
  expect(pipe).toMatchObject({ kind: "Pipe", version: "v1beta1" });
  expect(others).toEqual([]);
  expect(readKinds(crds, { kind: "Tap" })).toMatchObject([{ kind: "Tap" }]);
});

test.each([
  ["an unknown group", crds, { group: "c.com" }, "no CRD has the group c.com; found: a.com, b.com"],
  ["an unknown kind", crds, { kind: "Sink" }, "no CRD has the kind Sink; found: Pipe, Tap"],
  [
    "a version that is not served",
    crds,
    { kind: "Tap", apiVersion: "v0" },
    "the CRD taps.a.com does not serve the version v0, but v1; select a version with --api-version",
  ],
  [
    "a storage version that is not served",
    [crdOf("a.com", "Tap", [version("v1"), version("v0", { served: false, storage: true })])],
    {},
    "the CRD taps.a.com does not serve its storage version, but v1; select",
  ],
  [
    "a version without a schema",
    [crdOf("a.com", "Tap", [{ name: "v1", served: true, storage: true }])],
    {},
    "the CRD taps.a.com has no schema in version v1; add schema.openAPIV3Schema",
  ],
  [
    "a CRD of an older API",
    [{ ...crdOf("a.com", "Tap", [stored]), apiVersion: "apiextensions.k8s.io/v1beta1" }],
    {},
    'the CRD taps.a.com has the apiVersion "apiextensions.k8s.io/v1beta1"; only',
  ],
  [
    "a CRD without names",
    [{ ...crdOf("a.com", "Tap", []), spec: { group: "a.com", scope: "Cluster" } }],
    {},
    "the CRD taps.a.com has no spec.names.kind; add it",
  ],
])("%s is rejected", (_title, given, selection, message) => {
  expect(() => readKinds(given, selection)).toThrow(message);
});
