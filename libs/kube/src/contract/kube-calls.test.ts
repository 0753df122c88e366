import type { ApiObject, ResourceType } from "@konverge/core";
import { expect, test } from "vitest";
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
  async (k: KubeCalls<"step">) => {
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
  expect(calls).toHaveLength(2);
});
