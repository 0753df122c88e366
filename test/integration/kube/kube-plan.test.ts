import { isKonvergeError } from "@konverge/core";
import { createKubePlan, type CallPlan, type KubeClient } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { CoreV1Api } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testServers } from "./kube-servers.ts";

const namespace = `kube-plan-${process.pid}`;
const name = "settings";

/** Each way to write, through a client of any scope. */
const WRITES: Readonly<Record<string, (kube: KubeClient) => Promise<unknown>>> = {
  create: (kube) => kube.create(ConfigMap, { metadata: { namespace, name: "new" } }),
  replace: async (kube) =>
    kube.replace(ConfigMap, { ...(await kube.get(ConfigMap, { namespace, name })), data: {} }),
  patch: (kube) =>
    kube.patch(
      ConfigMap,
      { namespace, name },
      { type: "merge", body: { data: { a: "2" } } },
      { unguarded: true },
    ),
  apply: (kube) => kube.apply(ConfigMap, { metadata: { namespace, name }, data: { a: "2" } }),
  delete: (kube) => kube.delete(ConfigMap, { namespace, name }),
  deleteCollection: (kube) => kube.deleteCollection(ConfigMap, { namespace }),
  mutate: (kube) =>
    kube.mutate(ConfigMap, { namespace, name }, (draft) => {
      draft.metadata.labels = { a: "2" };
    }),
  raw: (kube) =>
    kube.raw({
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}/configmaps/${name}`,
    }),
  "raw with the option in the query of a deletion only": (kube) =>
    kube.raw({
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}/configmaps/${name}?dryRun=All`,
      body: { apiVersion: "v1", kind: "DeleteOptions" },
    }),
  "raw with another value": (kube) =>
    kube.raw({
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}/configmaps/${name}?dryRun=`,
    }),
  "raw to a program": (kube) =>
    kube.raw({ method: "POST", path: `/api/v1/namespaces/${namespace}/pods/a/exec?dryRun=All` }),
  "client-node": (kube) => kube.api(CoreV1Api).deleteNamespacedConfigMap({ namespace, name }),
  "an inner scope": (kube) => kube.scoped({ dryRun: false }).delete(ConfigMap, { namespace, name }),
};

describe.each(testServers())("plans on the $name", (target) => {
  let client: KubeClient;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const server = await target.open();
    client = server.client;
    close = () => server.close();
    await client.create(Namespace, { metadata: { name: namespace } });
    await client.create(ConfigMap, { metadata: { namespace, name }, data: { a: "1" } });
  });
  afterAll(async () => {
    await client.deleteCollection(ConfigMap, { namespace });
    await close();
  });
  const objects = async () => (await client.list(ConfigMap, { namespace })).items;

  test.each(Object.entries(WRITES))(
    "the transport rejects %s that a broken plan passes on",
    async (_, write) => {
      const broken: CallPlan = { send: (call, live) => live(call) };
      const before = await objects();
      const thrown: unknown = await write(client.scoped({ plan: broken })).catch(
        (error: unknown) => error,
      );
      expect(thrown).toSatisfy((error) => isKonvergeError(error) && error.code === "not_plannable");
      expect(await objects()).toEqual(before);
    },
  );

  test.each(Object.entries(WRITES))("a plan stores nothing of %s", async (_, write) => {
    const before = await objects();
    await write(client.scoped({ plan: createKubePlan() })).catch(() => undefined);
    expect(await objects()).toEqual(before);
  });

  test("objects of a planned namespace are planned without the server, which the plan names", async () => {
    const plan = createKubePlan();
    const kube = client.scoped({ plan });
    const other = `${namespace}-new`;
    await kube.create(Namespace, { metadata: { name: other } });
    await kube.create(ConfigMap, { metadata: { namespace: other, name: "inside" } });
    const { items } = await kube.list(ConfigMap, { namespace: other });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(["inside"]);
    expect(plan.objects.gaps).toMatchObject([{ about: `configmaps ${other}/inside` }]);
    await expect(client.get(Namespace, { name: other })).rejects.toThrow("404");
  });
});
