import { defineController, defineResource, type Controller, type Resource } from "@konverge/engine";
import { removeFinalizer } from "@konverge/kube";
import { ConfigMap, Deployment, Namespace, PersistentVolumeClaim } from "@konverge/kube/kinds";
import type { Config } from "@konverge/worker";
import type { Workflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  startTestCluster,
  testWorkflow,
  type TestCluster,
} from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf, importText } from "./load-block.ts";

const start = (controllers: readonly Controller[]) =>
  startTestCluster({ controllers, deadlineMs: 60_000 });

const Site = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Site",
  spec: z.object({ url: z.string() }),
  status: z.object({ up: z.boolean() }),
});

test("docs/from-kopf.md: one handler keeps the size and the labels of a claim", async () => {
  const { EphemeralVolumeClaim, volumes } = (await importText(
    blockOf("docs/from-kopf.md ts 1").text,
  )) as {
    EphemeralVolumeClaim: Resource<{ size: string }>;
    volumes: Controller;
  };
  await using k = await start([volumes]);
  const apply = (size: string, labels: Record<string, string>) =>
    k.apply(EphemeralVolumeClaim, { metadata: { name: "a", labels }, spec: { size } });
  const made = await k.reconciled(await apply("1G", { tier: "a", old: "x" }));
  expect(made.status).toEqual({ claim: "a" });
  // The API server resizes bound claims only.
  await k.setReady(await k.kube.get(PersistentVolumeClaim, "a"));
  await apply("2G", { tier: "b" });
  const claim = await k.until("the claim has the new size and labels", async () => {
    const found = await k.kube.get(PersistentVolumeClaim, "a");
    const { storage } = found.spec?.resources?.requests ?? {};
    return storage === "2G" && found.metadata.labels?.["tier"] === "b" && found;
  });
  expect(claim.metadata.labels).not.toHaveProperty("old");
  // Only the labels: kopf's `on.field`.
  await apply("2G", { tier: "c" });
  await k.until("the claim has the new label", async () => {
    return (await k.kube.get(PersistentVolumeClaim, "a")).metadata.labels?.["tier"] === "c";
  });
  await k.kube.delete(claim);
  await k.until("the claim is back", async () => {
    const found = await k.kube.find(PersistentVolumeClaim, "a");
    return found !== undefined && found.metadata.uid !== claim.metadata.uid;
  });
  await expect(apply("big", {})).rejects.toThrow("spec.size");
});

test("docs/from-kopf.md: a timer writes the status and requests its next run", async () => {
  const load = await functionOf<Controller>(
    blockOf("docs/from-kopf.md ts 2"),
    ["defineController", "Site", "fetch"],
    "pinger",
  );
  const fetch = async () => ({ ok: true });
  const pinger = await load({ defineController, Site, fetch });
  await using k = await start([pinger]);
  const site = await k.apply(Site, { metadata: { name: "a" }, spec: { url: "http://a" } });
  expect((await k.reconciled(site)).status).toEqual({ up: true });
  expect((await k.attempts(site)).map(({ outcome }) => outcome)).toContain("requeueAfter");
});

test.each([
  ["docs/from-kopf.md ts 3", "kopf.zalando.org/KopfFinalizerMarker"],
  ["docs/from-kubebuilder.md ts 4", "cache.example.com/finalizer"],
])("%s: removes the finalizer of the old operator", async (name, finalizer) => {
  const load = await functionOf(blockOf(name), ["kube", "object", "removeFinalizer"]);
  await using k = await start([]);
  const annotations = { "kopf.zalando.org/last-handled-configuration": "{}", other: "x" };
  const object = await k.kube.create(ConfigMap, {
    name: "old",
    annotations,
    finalizers: [finalizer, "example.com/ours"],
  });
  await load({ kube: k.kube, object, removeFinalizer });
  const { metadata } = await k.kube.get(ConfigMap, "old");
  expect(metadata.finalizers).toEqual(["example.com/ours"]);
  expect(metadata.annotations).toHaveProperty("other");
});

/** Creates a site, changes it, and returns the Deployments that the operator made of it. */
async function deploymentsOf(k: TestCluster): Promise<unknown[]> {
  const labels = { site: "true" };
  const apply = (image: string, replicas: string) =>
    k.apply(ConfigMap, { metadata: { name: "web", labels }, data: { image, replicas } });
  const seen = [];
  for (const [image, replicas] of [
    ["nginx:1", "1"],
    ["nginx:2", "3"],
  ] as const) {
    await apply(image, replicas);
    const made = await k.until(`the Deployment has ${image}`, async () => {
      const found = await k.kube.find(Deployment, "web");
      return found?.spec?.template.spec?.containers[0]?.image === image && found;
    });
    const [owner] = made.metadata.ownerReferences ?? [];
    seen.push({ name: owner?.name, controller: owner?.controller, ...made.spec });
  }
  return seen;
}

test("docs/from-client-node.md: both ports have the effect of the original program", async () => {
  const results: unknown[] = [];
  {
    await using k = await start([]);
    const block = blockOf("docs/from-client-node.md ts 1");
    const text = block.text
      .replace("config.loadFromDefault()", "config.loadFromString(kubeconfig)")
      .replace("for (;;) {", "stop(() => informer.stop());\nwhile (!signal.aborted) {");
    const run = await functionOf({ ...block, text }, ["kubeconfig", "signal", "stop"]);
    const ending = new AbortController();
    const { kubeconfig } = k;
    let stop = async () => undefined as void;
    const running = run({
      kubeconfig,
      signal: ending.signal,
      stop: (how: () => Promise<void>) => void (stop = how),
    });
    results.push(await deploymentsOf(k));
    ending.abort();
    await running;
    await stop();
  }
  for (const name of ["docs/from-client-node.md ts 2", "docs/from-client-node.md ts 3"]) {
    const { sites } = (await importText(blockOf(name).text)) as {
      sites: Controller;
    };
    await using k = await start([sites]);
    results.push(await deploymentsOf(k));
  }
  expect(results[0]).toHaveLength(2);
  expect(results[1]).toEqual(results[0]);
  expect(results[2]).toEqual(results[0]);
});

test("docs/from-bullmq.md: a run provisions a tenant, and repeats no step", async () => {
  const calls: string[] = [];
  const load = await functionOf<{ provision: Workflow<{ tenant: string }>; exported: Config }>(
    blockOf("docs/from-bullmq.md ts 1"),
    ["dns", "mail"],
    "{ provision, exported }",
  );
  let fails = 1;
  const dns = {
    async create(tenant: string) {
      calls.push(`dns ${tenant}`);
      if (fails-- > 0) throw new Error("unavailable");
    },
  };
  const mail = { send: async (tenant: string) => void calls.push(`mail ${tenant}`) };
  const { provision, exported } = await load({ dns, mail });
  expect(exported.limits).toEqual({ dns: { rate: 100, per: "1s" } });
  await using k = await start([]);
  const run = testWorkflow(
    provision,
    { tenant: "acme" },
    { kube: k.client, limits: exported.limits },
  );
  expect(await run.settle()).toMatchObject({ status: "done" });
  expect(calls).toEqual(["dns acme", "dns acme", "mail acme"]);
  await k.kube.get(Namespace, "acme");
});

test("docs/from-bullmq.md: a service starts a run and enqueues an object", async () => {
  const calls: unknown[] = [];
  const client = {
    runs: {
      start: async (given: unknown) => (calls.push(given), { id: "provision/default/acme" }),
      wait: async (id: unknown) => void calls.push(id),
    },
    reconciles: { create: async (given: unknown) => void calls.push(given) },
  };
  for (const name of ["docs/from-bullmq.md ts 2", "docs/from-bullmq.md ts 3"]) {
    const load = await functionOf(blockOf(name), ["client"]);
    await load({ client });
  }
  expect(calls).toEqual([
    { workflow: "provision", id: "acme", input: { tenant: "acme" } },
    "provision/default/acme",
    { controller: "site", namespace: "shop", name: "web", reason: "price list changed" },
  ]);
});
