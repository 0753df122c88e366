import { type ApiObject, type JsonObject, type ResourceType } from "@konverge/core";
import {
  conditions,
  defineController,
  defineResource,
  reportProgress,
  type Resource,
} from "@konverge/engine";
import { ignoreNotFound, isServed } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const GROUP = "definitions.test.konverge.dev";

const spec = z.object({
  size: z.int().min(1).default(1),
  hosts: z.array(z.string()).optional().meta({ "x-kubernetes-list-type": "set" }),
  ports: z
    .array(z.object({ name: z.string(), number: z.int() }))
    .optional()
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] }),
  args: z.array(z.string()).optional().meta({ "x-kubernetes-list-type": "atomic" }),
});
const Shop = defineResource({
  group: GROUP,
  version: "v2",
  kind: "Shop",
  shortNames: ["sh"],
  categories: ["all"],
  spec: spec.extend({ colour: z.string().optional() }),
  status: z.object({ observedGeneration: z.int(), conditions }),
  printerColumns: [
    { name: "Size", path: ".spec.size" },
    { name: "Ready", path: '.status.conditions[?(@.type=="Ready")].status' },
  ],
  versions: [{ version: "v1", spec, deprecated: "use v2" }],
  storage: "v2",
});
const OldShop: ResourceType<ApiObject & { spec: JsonObject }> = {
  group: GROUP,
  version: "v1",
  kind: "Shop",
  resource: "shops",
  scope: "Namespaced",
};

const shops = () =>
  defineController({
    name: "shops",
    for: Shop,
    async reconcile({ object: shop, kube }) {
      await kube.mutateStatus(shop, (draft) => {
        reportProgress(draft, { state: "ready", reason: "Open" });
      });
    },
  });

describe.each(testServers())("resource definitions on $name", (target) => {
  const harness = useEngines(target, `widgets.${GROUP}`);
  const installed: string[] = [];
  const install = async (
    resource: Resource,
    change: (spec: JsonObject) => void = () => undefined,
  ) => {
    const { client } = harness;
    const crd = resource.crd();
    change(crd.spec);
    installed.push(crd.metadata.name);
    await client.create(CustomResourceDefinition, crd);
    await until("it is served", () => isServed(client, resource));
  };
  const open = (name: string, more: JsonObject = {}) =>
    harness.client.create(Shop, { metadata: { namespace, name }, spec: { ...more } });

  afterEach(async () => {
    const { client } = harness;
    for (const name of installed.splice(0)) {
      await client.delete(CustomResourceDefinition, { name });
      await until("the definition is gone", async () => {
        return (
          (await client.get(CustomResourceDefinition, { name }).catch(ignoreNotFound)) === undefined
        );
      });
    }
  });

  test("the API server accepts all options of a definition, serves both versions, and startup finds no difference", async () => {
    await install(Shop);
    const { lines } = await harness.startController(shops());
    await open("blue", { colour: "red" });
    const { client } = harness;
    await until("it is open", async () => {
      const { status } = await client.get(Shop, { namespace, name: "blue" });
      return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
    });
    const shop = await client.get(Shop, { namespace, name: "blue" });
    expect(shop.status?.observedGeneration).toBe(shop.metadata.generation);
    expect(shop.spec).toMatchObject({ size: 1, colour: "red" });
    const old = await client.get(OldShop, { namespace, name: "blue" });
    expect(old).toMatchObject({ apiVersion: `${GROUP}/v1`, spec: { size: 1 } });
    expect(old.spec).not.toHaveProperty("colour");
    const [discovered] = (await client.discover(`${GROUP}/v2`)).filter(
      ({ kind }) => kind === "Shop",
    );
    expect(discovered).toMatchObject({ shortNames: ["sh"], subresources: ["status"] });
    expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
  });

  test("two managers share a set and a map, and contend for an atomic list", async () => {
    await install(Shop);
    const { client } = harness;
    await open("shared");
    const apply = (fieldManager: string, more: JsonObject) =>
      client.scoped({ fieldManager }).apply(Shop, {
        metadata: { namespace, name: "shared" },
        spec: { ...more },
      });
    await apply("one", { hosts: ["a"], ports: [{ name: "web", number: 80 }] });
    const both = await apply("two", { hosts: ["b"], ports: [{ name: "tls", number: 443 }] });
    expect(both.spec.hosts?.toSorted()).toEqual(["a", "b"]);
    expect(both.spec.ports).toHaveLength(2);
    await apply("one", { hosts: ["a"], args: ["x"] });
    await expect(apply("two", { args: ["y"] })).rejects.toThrow(/conflict.*one/s);
  });

  test("reports a CRD that differs with field and fix, and continues", async () => {
    await install(Shop, (crd) => {
      // One field has another schema, one another name.
      const text = JSON.stringify(crd)
        .replaceAll('"minimum":1', '"minimum":0')
        .replaceAll('"colour"', '"paint"');
      Object.assign(crd, JSON.parse(text));
    });
    const { lines } = await harness.startController(shops());
    const reported = lines.filter(({ message }) => message === "CRD differs from definition");
    expect(reported).toMatchObject([
      {
        fields: {
          kind: "Shop",
          fields: ["spec.size", "spec.colour", "spec.paint"],
          fix: expect.stringMatching(/^konverge crds/),
        },
      },
    ]);
  });

  test("reports a CRD with another required field with both fields", async () => {
    const Stall = defineResource({
      group: GROUP,
      version: "v1",
      kind: "Stall",
      spec: z.object({ size: z.int() }),
    });
    await install(Stall, (crd) => {
      Object.assign(crd, JSON.parse(JSON.stringify(crd).replaceAll('"size"', '"weight"')));
    });
    const stalls = defineController({ name: "stalls", for: Stall, reconcile: async () => {} });
    const { lines } = await harness.startController(stalls);
    const reported = lines.filter(({ message }) => message === "CRD differs from definition");
    expect(reported).toMatchObject([{ fields: { fields: ["spec.size", "spec.weight"] } }]);
  });

  test("refuses to start with a missing status subresource, another scope or a missing CRD, with a fix", async () => {
    const refusal = (type: ResourceType) =>
      harness
        .startController(defineController({ name: "shops", for: type, reconcile: async () => {} }))
        .then(() => "started", String);
    const absent = defineResource({ group: GROUP, version: "v1", kind: "Absent", spec });
    expect(await refusal(absent)).toMatch(
      /does not serve Absent in .*\/v1; install its CRD first \(konverge crds/,
    );
    const Quota = { group: "", version: "v1", kind: "NoQuota", resource: "noquotas" } as const;
    expect(await refusal({ ...Quota, scope: "Namespaced" })).toMatch(
      /does not serve NoQuota in v1; check both; the embedded API server serves the kinds of konverge.kinds only/,
    );
    // A separate group, because discovery lags behind the definitions.
    const Bare = defineResource({
      group: `bare.${GROUP}`,
      version: "v1",
      kind: "Bare",
      spec,
      status: z.object({ conditions }),
    });
    await install(Bare, (crd) => {
      for (const version of crd["versions"] as JsonObject[]) delete version["subresources"];
    });
    expect(await refusal(Bare)).toMatch(
      /controller "shops": Bare has a status in its definition, but .* no status subresource.*konverge crds/,
    );
    expect(await refusal({ ...Bare, scope: "Cluster" })).toMatch(/set scope to "Namespaced"/);
  });
});
