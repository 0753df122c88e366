import type { ApiObject, ResourceType } from "@konverge/core";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { defineController } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { createChangeFunctions } from "./change-functions.ts";

const Pool = {
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Pool",
  resource: "pools",
  scope: "Namespaced",
} as const;
const Tenant = { ...Pool, kind: "Tenant", resource: "tenants", scope: "Cluster" } as const;
const object: ApiObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "demo" },
};

/** The names of a watched object for a controller of `own`, and what is logged and counted. */
function mapWith(own: typeof Pool | typeof Tenant, names: unknown, type: ResourceType = ConfigMap) {
  const lines: { readonly message: string; readonly [field: string]: unknown }[] = [];
  const counted: string[] = [];
  const ignore = () => undefined;
  const log: Log = {
    debug: ignore,
    info: ignore,
    warn: (fields, message) => void lines.push({ ...fields, message }),
    error: (fields, message) => void lines.push({ ...fields, message }),
    child: () => log,
  };
  const controller = defineController({
    name: "mapped",
    for: own,
    watches: [
      { type: ConfigMap, map: () => [] },
      { type, map: () => names as [] },
    ],
    reconcile: async () => undefined,
  });
  const { namesOf } = createChangeFunctions(controller, {
    log,
    isSensitive: ({ kind }) => kind === "Secret",
    onError: (of) => void counted.push(of),
  });
  const source = controller.sources.at(-1) ?? controller.sources[0];
  return { found: namesOf(source, object), lines, counted };
}

test.each([
  [Pool, { name: "blue" }, "namespace is required, because Pool is namespaced"],
  [Pool, { namespace: "", name: "blue" }, "namespace must not be empty"],
  [Pool, { namespace: "demo", name: "" }, "name must not be empty"],
  [Pool, { namespace: "demo", name: "a/b" }, 'name must not contain "/" or "%", or be "." or ".."'],
  [Pool, "blue", "namespace is required, because Pool is namespaced"],
  [Pool, undefined, "namespace is required, because Pool is namespaced"],
  [
    Tenant,
    { namespace: "demo", name: "blue" },
    "namespace is not allowed, because Tenant is cluster-scoped",
  ],
  [Tenant, { name: "" }, "name must not be empty"],
] as const)("for %o, map must not return %j", (own, wrong, reason) => {
  const right = own.scope === "Cluster" ? { name: "a" } : { namespace: "demo", name: "a" };
  const { found, lines, counted } = mapWith(own, [wrong, right]);
  expect(found).toEqual([right]);
  expect(lines).toEqual([
    {
      message: "map function returned an invalid name, name skipped",
      controller: "mapped",
      source: "watches[1]",
      kind: "ConfigMap",
      namespace: "demo",
      object: "settings",
      returned: JSON.stringify(wrong) ?? "undefined",
      reason,
      fix: own === Tenant ? "return { name } from map" : "return { namespace, name } from map",
    },
  ]);
  expect(counted).toEqual(["map"]);
});

test("a name from a Secret is not logged", () => {
  const { lines } = mapWith(Pool, [{ name: "s3cret" }], Secret);
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain("s3cret");
});

test("map must return a list", () => {
  const { found, lines, counted } = mapWith(Pool, { namespace: "demo", name: "a" });
  expect([found, counted]).toEqual([[], ["map"]]);
  expect(lines[0]).toMatchObject({
    message: "map function threw, change skipped until the next resync",
    err: { message: "map must return a list of { namespace, name }" },
  });
});

test("a cluster-scoped object cannot have an owner in a namespace", () => {
  const lines: object[] = [];
  const controller = defineController({
    name: "owner",
    for: Pool,
    owns: [Tenant],
    reconcile: async () => undefined,
  });
  const log = { warn: (fields: object) => void lines.push(fields) } as unknown as Log;
  const options = { log, isSensitive: () => false, onError: () => undefined };
  const owner = { apiVersion: "demo.konverge.dev/v1", kind: "Pool", name: "a", uid: "1" };
  const metadata = { name: "t", ownerReferences: [{ ...owner, controller: true }] };
  const child = { apiVersion: "demo.konverge.dev/v1", kind: "Tenant", metadata };
  const { namesOf } = createChangeFunctions(controller, options);
  const [ofKind, owned = ofKind] = controller.sources;
  expect(namesOf(owned, child)).toEqual([]);
  expect(lines).toMatchObject([
    { source: "owns[0]", reason: 'Pool "a": namespace is required, because Pool is namespaced' },
  ]);
});
