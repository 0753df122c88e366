import { createLocalGate, formatKey, type ObjectKey } from "@konverge/core";
import { defineController, defineResource, generationChanged } from "@konverge/engine";
import { createKubeClient, isServed, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap, CustomResourceDefinition, StatefulSet } from "@konverge/kube/kinds";
import type { WorkQueue } from "@konverge/queue";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { eager, namespace, useEngines } from "./engine-harness.ts";

const Realm = defineResource({
  group: "sources.test.konverge.dev",
  version: "v1",
  kind: "Realm",
  scope: "Cluster",
  spec: z.object({ size: z.int() }),
});

async function keysOf(queue: WorkQueue): Promise<ObjectKey[]> {
  const keys: ObjectKey[] = [];
  for await (const page of queue.listKeys()) keys.push(...page);
  return keys;
}

describe.each(testServers())("the sources of a controller on $name", (target) => {
  const harness = useEngines(target, "widgets.sources.test.konverge.dev");

  beforeAll(async () => {
    await harness.client.create(CustomResourceDefinition, Realm.crd());
    await until("it is served", () => isServed(harness.client, Realm));
  });
  afterAll(async () => {
    await harness.client.delete(CustomResourceDefinition, Realm.crd().metadata);
  });

  test("a deleted child in a namespace triggers its cluster-scoped owner, which creates it again", async () => {
    const child = { namespace, name: "of-realm" };
    const childUid = async () => {
      const { items } = await harness.client.list(ConfigMap, { namespace });
      return items.find(({ metadata }) => metadata.name === child.name)?.metadata.uid;
    };
    const { queue, records, controller } = await harness.startController(
      defineController({
        name: "realms",
        for: Realm,
        owns: [ConfigMap],
        backoff: eager,
        async reconcile({ object, kube }) {
          const children = await kube.list(ConfigMap, { ownedBy: object });
          if (children.length === 0) await kube.create(ConfigMap, { ...child, ownedBy: object });
        },
      }),
    );
    await harness.client.create(Realm, { metadata: { name: "acme" }, spec: { size: 1 } });
    const first = await until("the child is made", childUid);
    await harness.client.delete(ConfigMap, child);
    await until("the child is made again", async () => {
      const uid = await childUid();
      return uid !== undefined && uid !== first;
    });
    expect((await keysOf(queue)).map(formatKey)).toEqual([
      "realms/default/realms.sources.test.konverge.dev/_/acme",
    ]);
    expect(controller.for.scope).toBe("Cluster");
    expect((await records("acme")).filter(({ outcome }) => outcome === "retry")).toEqual([]);
    await harness.client.delete(Realm, { name: "acme" });
    await harness.client.delete(ConfigMap, child);
  });

  test("map: names of the wrong scope are skipped and logged with the fix", async () => {
    const reasons: string[] = [];
    let runs = 0;
    const { queue, lines } = await harness.start({
      watches: [
        {
          type: ConfigMap,
          map: ({ metadata: { name } }) =>
            name === "mapped" ? [{ name: "phantom" }, { namespace, name: "real" }] : [],
        },
      ],
      reconcile: async ({ triggers }) => {
        reasons.push(...triggers.flatMap(({ reason = "" }) => reason));
        runs += 1;
      },
    });
    await harness.make("real");
    // Only a leader maps changes, and it has requested this object.
    await until("the process leads", () => runs > 0);
    const source = { namespace, name: "mapped" };
    await harness.client.create(ConfigMap, { metadata: source });
    const line = await until("it is logged", () =>
      lines.find(({ message }) => message.includes("invalid name")),
    );
    expect(line).toMatchObject({
      level: "error",
      fields: {
        source: "watches[0]",
        reason: "namespace is required, because Widget is namespaced",
        fix: "return { namespace, name } from map",
      },
    });
    await until("the other name is enqueued", () => reasons.includes("ConfigMap mapped added"));
    expect((await keysOf(queue)).map(({ name }) => name)).toEqual(["real"]);
    await harness.client.delete(ConfigMap, source);
  });

  test("a key of the wrong scope, which an older version enqueued, ends as gone", async () => {
    const { queue, key } = await harness.start({ reconcile: async () => undefined });
    const { namespace: _, ...phantom } = key("phantom");
    await queue.request(phantom, { kind: "watch" });
    const ended = await until("it has ended", async () => {
      const state = await queue.getKey(phantom);
      return state?.phase === "idle" && state;
    });
    expect(ended).toMatchObject({ lastOutcome: "gone", failures: 0 });
  });

  test("a handler in a namespace reads cluster-scoped objects by name", async () => {
    await harness.client.create(Realm, { metadata: { name: "read" }, spec: { size: 7 } });
    let found: readonly unknown[] | undefined;
    await harness.start({
      watches: [{ type: Realm, map: () => [] }],
      async reconcile({ kube }) {
        const { spec } = await kube.get(Realm, "read");
        const listed = await kube.list(Realm);
        found = [spec.size, listed.map(({ metadata }) => metadata.name)];
      },
    });
    await harness.make("reader");
    expect(await until("both are read", () => found)).toEqual([7, ["read"]]);
    await harness.client.delete(Realm, { name: "read" });
  });

  test("owns: changes of annotations or of managed fields start no attempt, as the predicates say", async () => {
    const reasons: string[] = [];
    let isMade = false;
    await harness.start({
      owns: [{ type: StatefulSet, predicate: generationChanged }, ConfigMap],
      async reconcile({ object, kube, triggers }) {
        reasons.push(...triggers.flatMap(({ reason = "" }) => reason));
        if (isMade) return;
        isMade = true;
        const labels = { app: "web" };
        const containers = [{ name: "app", image: "app:1" }];
        await kube.create(StatefulSet, {
          name: "quiet",
          ownedBy: object,
          spec: {
            selector: { matchLabels: labels },
            template: { metadata: { labels }, spec: { containers } },
          },
        });
        await kube.create(ConfigMap, { name: "quiet", ownedBy: object, data: { text: "same" } });
      },
    });
    await harness.make("owner");
    await until("the children are made", () =>
      ["StatefulSet quiet added", "ConfigMap quiet added"].every((reason) =>
        reasons.includes(reason),
      ),
    );
    const foreign = createKubeClient({
      credentials: loadKubeCredentials(harness.kubeconfig),
      gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
      userAgent: "somebody-else/1",
    });
    const child = { namespace, name: "quiet" };
    const versionOf = async () => (await foreign.get(ConfigMap, child)).metadata.resourceVersion;
    const before = await versionOf();
    for (let count = 0; count < 20; count += 1) {
      await foreign.mutate(StatefulSet, child, (draft) => {
        draft.metadata.annotations = { count: String(count) };
      });
    }
    // Changes only this manager's entry in managedFields.
    await foreign.apply(ConfigMap, { metadata: child, data: { text: "same" } });
    expect(await versionOf()).not.toBe(before);
    // The last change counts. Its trigger follows those of all earlier changes in each watch.
    await foreign.mutate(StatefulSet, child, (draft) => {
      draft.spec = { ...draft.spec!, replicas: 0 };
    });
    await foreign.mutate(ConfigMap, child, (draft) => {
      draft.data = { text: "other" };
    });
    await until("the last changes count", () =>
      ["StatefulSet quiet changed", "ConfigMap quiet changed"].every((reason) =>
        reasons.includes(reason),
      ),
    );
    expect(reasons.filter((reason) => reason.endsWith("changed")).toSorted()).toEqual([
      "ConfigMap quiet changed",
      "StatefulSet quiet changed",
    ]);
    await foreign.delete(StatefulSet, child);
    await foreign.delete(ConfigMap, child);
    await foreign.close();
  });
});
