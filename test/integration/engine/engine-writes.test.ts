import type { ApiObject } from "@konverge/core";
import { ignoreNotFound, isServed } from "@konverge/kube";
import { ConfigMap, Job } from "@konverge/kube/kinds";
import type { AttemptKube, ReconcileContext } from "@konverge/engine";
import { describe, expect, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

describe.each(testServers())("writes of a handler on $name", (target) => {
  const harness = useEngines(target, "writes.test.konverge.dev");

  /** Runs the function as a handler for a new object, and returns the record of the first attempt. */
  const attempt = async (
    name: string,
    act: (kube: AttemptKube, context: ReconcileContext<Widget>) => Promise<unknown>,
  ) => {
    const { records } = await harness.start({
      backoff: eager,
      maxFailures: 1,
      reconcile: async (context) => void (await act(context.kube, context)),
    });
    await harness.make(name);
    return await until("it is recorded", async () => (await records(name)).at(-1)?.parsed);
  };

  describe("delete", () => {
    const place = (name: string) => ({ namespace, name });
    /** A Job, which the server orphans by default, if the server has this kind. */
    const makeOwner = async (name: string) => {
      const { client } = harness;
      const metadata = place(name);
      if (!(await isServed(client, Job))) return await client.create(ConfigMap, { metadata });
      const pod = { containers: [{ name: "a", image: "a" }], restartPolicy: "Never" };
      return await client.create(Job, { metadata, spec: { template: { spec: pod } } });
    };
    const find = async ({ apiVersion, kind, metadata }: ApiObject) =>
      await harness.client
        .get(await harness.client.resolveType(apiVersion, kind), metadata)
        .catch(ignoreNotFound);

    test("deletes a Job and does not keep its Pods", async () => {
      const owner = await makeOwner("background");
      expect(await attempt("background", (kube) => kube.delete(owner))).toMatchObject({
        outcome: "done",
      });
      expect(await find(owner)).toBeUndefined();
    });

    test.each([
      { propagationPolicy: "Orphan", finalizer: "orphan" },
      { propagationPolicy: "Foreground", finalizer: "foregroundDeletion" },
    ] as const)("takes $propagationPolicy", async ({ propagationPolicy, finalizer }) => {
      const name = finalizer.toLowerCase();
      const owner = await makeOwner(name);
      const record = await attempt(name, (kube) => kube.delete(owner, { propagationPolicy }));
      expect(record).toMatchObject({ outcome: "done" });
      expect((await find(owner))?.metadata.finalizers).toContain(finalizer);
      const type = await harness.client.resolveType(owner.apiVersion, owner.kind);
      await harness.client.mutate(type, place(name), (draft) => {
        delete draft.metadata.finalizers;
      });
    });
  });
});
