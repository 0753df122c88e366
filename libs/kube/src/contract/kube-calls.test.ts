import type { ApiObject, ResourceType } from "@konverge/core";
import type { V1ConfigMap, V1Deployment, V1Pod } from "@kubernetes/client-node";
import { expect, expectTypeOf, test } from "vitest";
import { Deployment, Pod } from "../names/kinds.ts";
import type { KubeCalls } from "./kube-calls.ts";
import type { ObjectRef } from "./object-ref.ts";

interface PoolObject extends ApiObject {
  spec: { zone: string; replicas: number; taints: { key: string; value: string }[] };
}
const Pool: ResourceType<PoolObject> = {
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Pool",
  resource: "pools",
  scope: "Namespaced",
};

/** The compiler checks these calls; they never run. */
const calls = [
  async (kube: KubeCalls<"handler">) => {
    const applied = await kube.apply(Pool, { metadata: { name: "a" }, spec: { replicas: 3 } });
    applied.spec.zone.toUpperCase();
    await kube.apply(
      Deployment,
      { metadata: { name: "a" }, spec: { replicas: 3 } },
      { force: true, fieldManager: "konverge/replicas", subresource: "status" },
    );
    // An item of a list is identified by its key, so the rest of it belongs to others.
    await kube.apply(Pool, { metadata: { name: "a" }, spec: { taints: [{ key: "gpu" }] } });
    await kube.apply(Pool, { name: "a", spec: { replicas: 3 } });
    await kube.apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } });
    // @ts-expect-error the name is required
    await kube.apply(Pool, { metadata: {}, spec: { replicas: 3 } });
    // @ts-expect-error a field of another type
    await kube.apply(Pool, { metadata: { name: "a" }, spec: { replicas: "3" } });
    // @ts-expect-error an unknown field
    await kube.apply(Pool, { metadata: { name: "a" }, spec: { replica: 3 } });
    const pod = await kube.get(Pod, "a");
    const patched = await kube.patch(pod, { metadata: { labels: { a: "1" } } }, { type: "merge" });
    void patched.status?.podIP;
    // @ts-expect-error the type of the patch is required
    await kube.patch(pod, {}, {});
    const ref: ObjectRef | undefined = undefined as ObjectRef | undefined;
    if (ref !== undefined) await kube.mutate(ref, (draft) => void (draft.metadata.labels = {}));
    await kube.mutate(pod, (draft) => void delete draft.spec?.hostname);
  },
  async (kube: KubeCalls<"handler">, web: V1Deployment, data: V1ConfigMap, pod: V1Pod) => {
    const { spec } = await kube.create(Deployment, web);
    expectTypeOf(spec?.replicas).toEqualTypeOf<number | undefined>();
    await kube.apply(Deployment, { ...web, spec: { ...web.spec!, replicas: 3 } });
    const { metadata } = await kube.replace(Deployment, web, { dryRun: true });
    expectTypeOf(metadata.creationTimestamp).toEqualTypeOf<string | undefined>();
    // @ts-expect-error a value of another class
    await kube.create(Deployment, data);
    // @ts-expect-error a value of another class
    await kube.apply(Deployment, pod);
    // @ts-expect-error a literal has a name
    await kube.apply(Deployment, { metadata: { labels: {} } });
    // @ts-expect-error a literal has metadata
    await kube.create(Deployment, { spec: web.spec! });
    const full = { selector: {}, template: {} };
    // @ts-expect-error an unknown field of a literal
    await kube.apply(Deployment, { metadata: { name: "a" }, spec: { ...full, replica: 3 } });
    // @ts-expect-error a kind without a class
    await kube.create(Pool, web);
    // @ts-expect-error kind and version are optional in the class
    await kube.replace(web);
  },
  async (k: KubeCalls<"step">, web: V1Deployment) => {
    const made: ObjectRef = await k.create(Deployment, web);
    await k.apply(Deployment, web);
    await k.replace(Deployment, web);
    void made;
    const ref: ObjectRef = await k.apply(Pool, {
      metadata: { name: "a", namespace: "b" },
      spec: { replicas: 3 },
    });
    await k.delete(ref);
    const pods = await k.list(Pod, { namespace: "b" });
    for (const pod of pods) await k.patch(pod, [], { type: "json" });
    const pod = await k.get(Pod, { name: "a", namespace: "b" });
    // @ts-expect-error objects returned by reads are frozen
    pod.metadata.labels = {};
    await k.replace({ ...pod, status: {} });
    await k.delete(pod);
  },
];

test("the calls of handlers and steps have one interface", () => {
  expect(calls).toHaveLength(3);
});
