import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiException, AppsV1Api, KubeConfig, V1Deployment } from "@kubernetes/client-node";
import { isJsonObject, type ApiObject } from "@konverge/core";
import { conditions, defineResource, type Controller, type Resource } from "@konverge/engine";
import { fromClientNode, isConflict } from "@konverge/kube";
import { ConfigMap, Deployment, Namespace, Pod, Service } from "@konverge/kube/kinds";
import { optionsOfCluster, type Config } from "@konverge/worker";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { loadCrds } from "../../../apps/cli/src/crd-types/load-crds.ts";
import { makeZodFile } from "../../../apps/cli/src/crd-types/make-zod-file.ts";
import { makeTypeFile } from "../../../apps/cli/src/crd-types/make-type-file.ts";
import { readKinds } from "../../../apps/cli/src/crd-types/read-kinds.ts";
import { startTestCluster, testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

const Scaler = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Scaler",
  spec: z.object({ replicas: z.int() }),
});

const PUBLISHED = "test/integration/kube/published-crds/cert-manager.yaml";

test("a handler and a step use APIs of client-node, by its KubeConfig", async () => {
  const makeController = await functionOf<Controller>(
    blockOf("docs/bring-your-code.md ts 1"),
    ["Scaler"],
    "scaler",
  );
  const scaler = await makeController({ Scaler });
  await using k = await startTestCluster({ controllers: [scaler] });
  const labels = { app: "web" };
  await k.apply(Deployment, {
    metadata: { name: "web" },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
    },
  });
  await k.reconciled(await k.apply(Scaler, { metadata: { name: "web" }, spec: { replicas: 3 } }));
  expect((await k.kube.get(Deployment, "web")).spec?.replicas).toBe(3);

  const makeWorkflow = await functionOf<Workflow<{ namespace: string }>>(
    blockOf("docs/bring-your-code.md ts 2"),
    [],
    "reserve",
  );
  const reserve = await makeWorkflow({});
  for (const _ of ["first", "again"]) {
    const run = testWorkflow(reserve, { namespace: "default" }, { kube: k.client });
    expect(await run.settle()).toMatchObject({ status: "done" });
  }
  expect((await k.kube.get(ConfigMap, "reserved")).data).toEqual({ by: "reserve" });

  const makeConfig = await functionOf<Config>(
    blockOf("docs/bring-your-code.md ts 5"),
    ["scaler"],
    "exported",
  );
  const { clusters } = await makeConfig({ scaler });
  expect(optionsOfCluster(clusters, "default")?.kubeconfig).toBeInstanceOf(KubeConfig);
});

test("a handler keeps a list of children", async () => {
  const Site = defineResource({
    group: "docs.konverge.dev",
    version: "v1",
    kind: "Site",
    spec: z.object({ image: z.string(), public: z.boolean() }),
    status: z.object({ observedGeneration: z.int(), conditions }),
  });
  const load = await functionOf<Controller>(blockOf("docs/children.md ts 1"), ["Site"], "site");
  await using k = await startTestCluster({ controllers: [await load({ Site })] });
  const apply = (isPublic: boolean) =>
    k.apply(Site, { metadata: { name: "a" }, spec: { image: "nginx", public: isPublic } });
  const created = await k.reconciled(await apply(true));
  expect(created.status?.conditions).toContainEqual(
    expect.objectContaining({ reason: "WaitingForChildren", message: expect.stringMatching(/./) }),
  );
  await k.setReady(await k.kube.get(Deployment, "a"));
  await k.until("it is ready", async () => {
    const { status } = await k.kube.get(Site, "a");
    return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
  });
  await k.kube.get(Service, "a");
  await k.reconciled(await apply(false));
  await k.until("the Service is deleted", async () => !(await k.kube.find(Service, "a")));
});

test("an object of client-node's classes is written", async () => {
  await using k = await startTestCluster({});
  const load = await functionOf<(kube: unknown, web: V1Deployment) => Promise<void>>(
    blockOf("docs/bring-your-code.md ts 4"),
    [],
    "publish",
  );
  const publish = await load({});
  const web = new V1Deployment();
  const labels = { app: "web" };
  const restartedAt = "2026-01-01T00:00:00Z";
  web.metadata = { name: "web", creationTimestamp: new Date(restartedAt) };
  const containers = [{ name: "web", image: "nginx" }];
  const template = { metadata: { labels }, spec: { containers } };
  web.spec = { selector: { matchLabels: labels }, template };
  await publish(k.kube, web);
  const { items } = await k.client
    .api(AppsV1Api)
    .listNamespacedDeployment({ namespace: "default" });
  expect(items.map(({ metadata }) => metadata?.name)).toEqual(["web", "web-canary"]);

  // An item of a list has no kind, and times as Date.
  const [item] = items;
  assert(item?.kind === undefined && item?.metadata?.creationTimestamp instanceof Date);
  item.spec!.replicas = 3;
  expect((await k.kube.replace(Deployment, item)).spec?.replicas).toBe(3);
  await expect(k.kube.replace(Deployment, item)).rejects.toSatisfy(isConflict);
  const copy = { ...item, metadata: { name: "copy" } };
  await k.kube.create(Deployment, fromClientNode(copy));
  const issue = { code: "invalid_request", issues: [{ pointer: "/name" }] };
  await expect(k.kube.replace(Deployment, new V1Deployment())).rejects.toMatchObject(issue);
  const steps = defineWorkflow("steps", { version: 1, kinds: [Deployment] }, async (w) => {
    await w.step("replace", async (step) => {
      const read = await step.api(AppsV1Api).readNamespacedDeployment(target);
      read.spec!.replicas = 5;
      await step.replace(Deployment, read);
      await step.apply(Deployment, web);
    });
  });
  const target = { namespace: "default", name: "web-canary" };
  web.metadata.namespace = "default";
  const run = testWorkflow(steps, undefined, { kube: k.client });
  expect(await run.settle()).toMatchObject({ status: "done" });
  expect((await k.kube.get(Deployment, "web-canary")).spec?.replicas).toBe(5);
});

test("a script can use the calls of a handler", async () => {
  await using k = await startTestCluster({});
  await k.kube.create(Namespace, { name: "shop" });
  const load = await functionOf(blockOf("docs/bring-your-code.md ts 6"), ["process"]);
  await k.kube.create(Pod, {
    name: "web",
    namespace: "shop",
    spec: { containers: [{ name: "web", image: "nginx" }] },
  });
  const folder = await mkdtemp(join(tmpdir(), "konverge-script-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const KUBECONFIG = join(folder, "kubeconfig");
  await writeFile(KUBECONFIG, k.kubeconfig);
  await load({ process: { env: { KUBECONFIG } } });
  const report = await k.kube.get(ConfigMap, { namespace: "shop", name: "report" });
  expect(report.data).toEqual({ waiting: "1" });
  expect(report.metadata.managedFields?.map(({ manager }) => manager)).toEqual(["report"]);
});

test("predicates accept an ApiException", async () => {
  const load = await functionOf<(error: unknown) => string>(
    blockOf("docs/bring-your-code.md ts 3"),
    [],
    "explain",
  );
  const explain = await load({});
  const codes = [409, 404, 500].map((code) => explain(new ApiException(code, "", "", {})));
  expect(codes).toEqual(["client-node's own check", "missing", "other"]);
});

test("zod schemas of a CRD parse manifests, and are part of another resource", async () => {
  const kinds = readKinds(await loadCrds(PUBLISHED));
  // The packages resolve from here.
  const folder = await mkdtemp(join(import.meta.dirname, "types-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "cert-manager.ts");
  await writeFile(file, makeZodFile(kinds, "konverge types x --zod"));
  const block = blockOf("docs/bring-your-code.md ts 8");
  const text = block.text.replace("./cert-manager.ts", file);
  const load = await functionOf<[(manifest: unknown) => ApiObject, Resource]>(
    { ...block, text },
    [],
    "[parseCertificate, Website]",
  );
  const [parse, Website] = await load({});
  const issuerRef = { name: "letsencrypt" };
  const manifest = {
    apiVersion: "cert-manager.io/v1",
    kind: "Certificate",
    metadata: { name: "web" },
    spec: { secretName: "web-tls", issuerRef, unknown: 1 },
  };
  expect(parse(manifest)).toMatchObject({ spec: { secretName: "web-tls", issuerRef } });
  expect(parse(manifest)).not.toHaveProperty("spec.unknown");
  expect(() => parse({ ...manifest, spec: { issuerRef } })).toThrow("secretName");
  expect(JSON.stringify(Website.crd())).toContain('"required":["issuerRef","secretName"]');
});

test("keywords are part of a CRD", async () => {
  const load = await functionOf<z.ZodType>(blockOf("docs/bring-your-code.md ts 9"), [], "labels");
  const labels = await load({});
  const spec = z.object({ labels });
  const Thing = defineResource({ group: "example.com", version: "v1", kind: "Thing", spec });
  expect(JSON.stringify(Thing.crd())).toContain('"maxProperties":8');
});

test("a controller uses the generated type of a CRD", async () => {
  const crds = await loadCrds(PUBLISHED);
  const crd = crds.find(({ metadata }) => {
    return isJsonObject(metadata) && metadata["name"] === "certificates.cert-manager.io";
  });
  const folder = await mkdtemp(join(tmpdir(), "konverge-types-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "cert-manager.ts");
  await writeFile(file, makeTypeFile(readKinds(crds), "konverge types x"));
  const block = blockOf("docs/bring-your-code.md ts 7");
  const text = block.text.replace("./cert-manager.ts", file);
  const load = await functionOf<Controller>({ ...block, text }, [], "issued");
  const issued = await load({});
  const Certificate = { ...issued.for, crd: () => crd } as unknown as Resource;
  await using k = await startTestCluster({ controllers: [issued], resources: [Certificate] });
  const spec = { secretName: "web-tls", issuerRef: { name: "letsencrypt" } };
  const manifest = { metadata: { name: "web" }, spec };
  await k.reconciled(await k.apply(Certificate, manifest));
  const data = { secret: "web-tls", renewal: "unknown" };
  expect((await k.kube.get(ConfigMap, "web")).data).toEqual(data);
});
