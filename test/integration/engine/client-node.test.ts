import { readFileSync } from "node:fs";
import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  VersionApi,
} from "@kubernetes/client-node";
import { resourceId } from "@konverge/core";
import {
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNotFound,
  isOptimisticConflict,
} from "@konverge/kube";
import { ConfigMap, Deployment, Secret } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { reconcileSite as original } from "./client-node/original-operator.ts";
import { reconcileSite as ported } from "./client-node/ported-operator.ts";
import type { Site } from "./client-node/site.ts";
import { eager, namespace, useEngines } from "./engine-harness.ts";

const group = "client-node.test.konverge.dev";

describe.each(testServers())("APIs of client-node on $name", (target) => {
  const harness = useEngines(target, group);
  const config = () => {
    const loaded = new KubeConfig();
    const { kubeconfigText, kubeconfigPath = "" } = harness.kubeconfig;
    if (kubeconfigText === undefined) loaded.loadFromFile(kubeconfigPath);
    else loaded.loadFromString(kubeconfigText);
    return loaded;
  };
  const caught = async (run: () => Promise<unknown>): Promise<unknown> => {
    try {
      await run();
    } catch (error) {
      return error;
    }
    throw new Error("it did not throw");
  };

  test("write nothing in the scope of a dry run", async () => {
    const core = harness.client.api(CoreV1Api);
    const dry = harness.client.scoped({ dryRun: true }).api(CoreV1Api);
    const of = { name: "dry", namespace };
    const body = { metadata: { name: "dry" }, data: { text: "a" } };
    await dry.createNamespacedConfigMap({ namespace, body });
    await expect(core.readNamespacedConfigMap(of)).rejects.toThrow("404");
    const created = await core.createNamespacedConfigMap({ namespace, body });
    const changed = { ...created, data: { text: "b" } };
    expect((await dry.replaceNamespacedConfigMap({ ...of, body: changed })).data).toEqual({
      text: "b",
    });
    await dry.deleteNamespacedConfigMap(of);
    // With a body, the server ignores the query.
    await dry.deleteNamespacedConfigMap({ ...of, body: { gracePeriodSeconds: 0 } });
    await dry.deleteCollectionNamespacedConfigMap({
      namespace,
      fieldSelector: "metadata.name=dry",
      body: {},
    });
    expect(await core.readNamespacedConfigMap(of)).toEqual(created);
    const exec = dry.connectPostNamespacedPodProxyWithPath({ ...of, path: "x" });
    await expect(exec).rejects.toThrow("POST proxy has no dry run");
  });

  test("return what client-node returns, and throw what it throws", async () => {
    const ours = harness.client;
    const name = "same";
    expect(ours.api(VersionApi)).toBeInstanceOf(VersionApi);
    const theirs = config().makeApiClient(CoreV1Api);
    const core = ours.api(CoreV1Api);
    const body = { metadata: { name }, data: { text: "ü<&>\u2028", long: "x".repeat(70_000) } };
    const created = await core.createNamespacedConfigMap({ namespace, body });
    expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date);
    expect(created).toEqual(await theirs.readNamespacedConfigMap({ name, namespace }));
    expect(await core.readNamespacedConfigMap({ name, namespace })).toEqual(created);
    const list = { namespace, fieldSelector: `metadata.name=${name}` };
    expect((await core.listNamespacedConfigMap(list)).items).toEqual(
      (await theirs.listNamespacedConfigMap(list)).items,
    );
    const calls: [string, (api: CoreV1Api) => Promise<unknown>, (error: unknown) => boolean][] = [
      ["absent", (api) => api.readNamespacedConfigMap({ name: "absent", namespace }), isNotFound],
      ["exists", (api) => api.createNamespacedConfigMap({ namespace, body }), isAlreadyExists],
      [
        "stale",
        (api) =>
          api.replaceNamespacedConfigMap({
            name,
            namespace,
            body: { ...body, metadata: { name, resourceVersion: "1" } },
          }),
        isConflict,
      ],
      [
        "invalid",
        (api) => api.createNamespacedConfigMap({ namespace, body: { metadata: { name: "A b" } } }),
        isInvalid,
      ],
    ];
    for (const [what, call, predicate] of calls) {
      const [mine, other] = [await caught(() => call(core)), await caught(() => call(theirs))];
      expect(mine, what).toBeInstanceOf(ApiException);
      const { code, body: text } = mine as ApiException<string>;
      const expected = other as ApiException<string>;
      expect([code, JSON.parse(text)], what).toEqual([expected.code, JSON.parse(expected.body)]);
      expect([predicate(mine), predicate(other)], what).toEqual([true, true]);
    }
    const deleted = await core.deleteNamespacedConfigMap({ name, namespace });
    expect(deleted.status).toBe("Success");
    const objects = ours.api(KubernetesObjectApi);
    const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace } };
    expect((await objects.create(manifest)).metadata?.name).toBe(name);
    await objects.delete(manifest);
  });

  test("reject streams with the fix", async () => {
    const core = harness.client.api(CoreV1Api);
    await expect(core.listNamespacedConfigMap({ namespace, watch: true })).rejects.toThrow(
      "watch=true: kube.api() returns whole responses",
    );
  });

  test("a ported operator changes one line per API object, and has the same result", async () => {
    const text = (name: string) =>
      readFileSync(new URL(`client-node/${name}-operator.ts`, import.meta.url), "utf8")
        .split("\n")
        .filter((line) => !line.startsWith("import") && !line.startsWith("/**"))
        .filter((line) => !line.startsWith("export") && line !== "  type KubeConfig,");
    const [before, after] = [text("original"), text("ported")];
    const changed = before.filter((line, n) => line !== after[n]);
    expect(changed.map((line) => line.replace(/^.*= /, ""))).toEqual([
      "config.makeApiClient(CoreV1Api);",
      "config.makeApiClient(AppsV1Api);",
      "config.makeApiClient(CustomObjectsApi);",
    ]);
    const spec = { text: "hello", replicas: 1 };
    const seen: unknown[] = [];
    const results = async (name: string) => {
      const at = { namespace, name };
      const [map, deployment, site] = [
        await harness.client.get(ConfigMap, at),
        await harness.client.get(Deployment, at),
        await harness.client.get(harness.Widgets, at),
      ];
      return { data: map.data, replicas: deployment.spec?.replicas, status: site.status };
    };
    const { records } = await harness.start({
      backoff: eager,
      reconcile: async ({ object, kube }) => {
        if (!object.metadata.name.startsWith("ported")) return;
        await ported(kube, object as unknown as Site, group);
        seen.push(object);
      },
    });
    const run = async (name: string, step: typeof spec) => {
      const site = (await harness.client.mutate(harness.Widgets, { namespace, name }, (draft) => {
        draft.spec = step;
      })) as unknown as { object: Site };
      if (name === "original") await original(config(), site.object, group);
      await until("it is reconciled", async () => {
        const found = await harness.client.get(harness.Widgets, { namespace, name });
        return found.status?.["replicas"] === step.replicas;
      });
    };
    for (const name of ["original", "ported"]) await harness.make(name, { text: "", replicas: 0 });
    for (const step of [spec, { text: "bye", replicas: 2 }]) {
      for (const name of ["original", "ported"]) await run(name, step);
      const [one, other] = [await results("original"), await results("ported")];
      for (const { status } of [one, other]) delete status?.["since"];
      expect(other).toEqual(one);
    }
    const writes = (await records("ported")).flatMap(({ parsed }) => parsed["writes"] as object[]);
    expect(writes).toContainEqual(
      expect.objectContaining({ verb: "create", resource: "configmaps", name: "ported" }),
    );
    expect(writes).toContainEqual(
      expect.objectContaining({ verb: "patch", resource: "deployments.apps", name: "ported" }),
    );
    expect(writes).toContainEqual(
      expect.objectContaining({
        verb: "update",
        resource: resourceId(harness.Widgets),
        subresource: "status",
      }),
    );
    await Promise.all(
      ["original", "ported"].flatMap((name) => [
        harness.client.delete(ConfigMap, { namespace, name }),
        harness.client.delete(Deployment, { namespace, name }),
      ]),
    );
  });

  test("a conflict names the competing writer, and an uncaught one ends the attempt as a conflict", async () => {
    let attempts = 0;
    const { records, queue, key } = await harness.start({
      backoff: eager,
      reconcile: async ({ object, kube }) => {
        const { name } = object.metadata;
        const place = { group, version: "v1", plural: "widgets", namespace, name };
        const widgets = kube.api(CustomObjectsApi);
        const body = await widgets.getNamespacedCustomObject(place);
        if (++attempts > 2) return;
        await harness.client
          .scoped({ fieldManager: "rival" })
          .mutate(harness.Widgets, { namespace, name }, (draft) => {
            draft.spec = { ...draft.spec, rival: attempts };
          });
        const lost = await caught(() =>
          widgets.replaceNamespacedCustomObject({ ...place, body: { ...body, spec: { own: 1 } } }),
        );
        expect(isOptimisticConflict(lost)).toBe(true);
        if (attempts === 1) throw lost;
        const found = await widgets.getNamespacedCustomObject(place);
        await widgets.replaceNamespacedCustomObject({ ...place, body: found });
      },
    });
    await harness.make("contended");
    const [first, second] = await until("both are recorded", async () => {
      const stored = (await records("contended")).toReversed();
      return stored.length >= 2 && stored.map(({ parsed }) => parsed);
    });
    expect(first).toMatchObject({ outcome: "conflict", error: { code: "kube_api" } });
    expect(first?.error?.message).not.toContain("Headers");
    expect(second).toMatchObject({
      outcome: "done",
      conflicts: [
        {
          name: "contended",
          readVersion: expect.any(String),
          foundVersion: expect.any(String),
          competingWriters: [{ manager: "rival", paths: ["spec.rival"] }],
        },
      ],
    });
    expect(await queue.getKey(key("contended"))).toMatchObject({ failures: 0 });
  });

  test("P12: an ApiException about a Secret reveals none of its content", async () => {
    const secret = "hunter2-is-the-password";
    const { records, lines } = await harness.start({
      backoff: eager,
      maxFailures: 1,
      reconcile: async ({ kube }) => {
        const body = { metadata: { name: "Not Valid" }, stringData: { [`${secret} key`]: secret } };
        await kube.api(CoreV1Api).createNamespacedSecret({ namespace, body });
      },
    });
    await harness.make("leaky");
    const record = await until("it is recorded", async () => (await records("leaky")).at(-1));
    expect(record.parsed).toMatchObject({ outcome: "rejected", error: { code: "kube_api" } });
    expect(record.record).not.toContain(secret);
    expect(JSON.stringify(lines)).not.toContain(secret);
    expect((await harness.client.list(Secret, { namespace })).items).toEqual([]);
  });

  test("calls are those of the attempt: counted, under its field manager, rejected after its end", async () => {
    let core: CoreV1Api | undefined;
    let apps: AppsV1Api | undefined;
    const { records, controller } = await harness.start({
      backoff: eager,
      reconcile: async ({ kube }) => {
        core ??= kube.api(CoreV1Api);
        apps ??= kube.api(AppsV1Api);
        await core.createNamespacedConfigMap({
          namespace,
          body: { metadata: { name: "counted" }, data: { a: "1" } },
        });
        await apps.listNamespacedDeployment({ namespace });
      },
    });
    await harness.make("counting");
    const record = await until("it is recorded", async () => (await records("counting")).at(-1));
    expect(record.parsed).toMatchObject({
      outcome: "done",
      writes: [{ verb: "create", resource: "configmaps", name: "counted" }],
    });
    // The object itself may come from the watch.
    const { count } = record.parsed["calls"] as { readonly count: number };
    expect([2, 3]).toContain(count);
    const made = await harness.client.get(ConfigMap, { namespace, name: "counted" });
    expect(made.metadata.managedFields?.map(({ manager }) => manager)).toEqual([
      `konverge/${controller.name}`,
    ]);
    await harness.client.delete(ConfigMap, { namespace, name: "counted" });
    await expect(core?.listNamespace()).rejects.toThrow("the attempt has ended");
  });
});
