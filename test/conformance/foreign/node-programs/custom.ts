import { type KubernetesObject, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { outcomeOf, parts, type World } from "./world.ts";

/** CustomObjectsApi, with the errors of each verb. */
export async function custom({ custom: api, namespace, say }: World): Promise<void> {
  const at = { ...parts, namespace };
  const body = (name: string, spec: object, more: object = {}) => ({
    apiVersion: "foreign.konverge.dev/v1",
    kind: "Part",
    metadata: { name, ...more },
    spec,
  });
  const show = async (title: string, call: () => Promise<unknown>) =>
    say(`${title}: ${await outcomeOf(call)}`);
  await show("create", () =>
    api.createNamespacedCustomObject({ ...at, body: body("a", { size: "s" }) }),
  );
  await show("again", () =>
    api.createNamespacedCustomObject({ ...at, body: body("a", { size: "s" }) }),
  );
  await show("invalid", () =>
    api.createNamespacedCustomObject({ ...at, body: body("b", { size: "s", replicas: -1 }) }),
  );
  await show("no name", () =>
    api.createNamespacedCustomObject({ ...at, body: body("", { size: "s" }) }),
  );
  await show("wrong type", () =>
    api.createNamespacedCustomObject({ ...at, body: body("b", { size: 5 }) }),
  );
  await show("dry run", () =>
    api.createNamespacedCustomObject({ ...at, body: body("b", { size: "m" }), dryRun: "All" }),
  );
  await show("missing", () => api.getNamespacedCustomObject({ ...at, name: "b" }));
  await show("unknown kind", () =>
    api.getNamespacedCustomObject({ ...at, plural: "none", name: "b" }),
  );
  await show("unknown group", () => api.listNamespacedCustomObject({ ...at, group: "none.dev" }));
  await show("status", () =>
    api.patchNamespacedCustomObjectStatus(
      { ...at, name: "a", body: { status: { replicas: 2, unknown: 1 }, spec: { size: "l" } } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    ),
  );
  await show("scale", () => api.getNamespacedCustomObjectScale({ ...at, name: "a" }));
  await show("scale to 4", () =>
    api.patchNamespacedCustomObjectScale(
      { ...at, name: "a", body: { spec: { replicas: 4 } } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    ),
  );
  const stale = (await api.getNamespacedCustomObject({ ...at, name: "a" })) as KubernetesObject;
  await show("json patch", () =>
    api.patchNamespacedCustomObject({
      ...at,
      name: "a",
      body: [
        { op: "test", path: "/spec/size", value: "s" },
        { op: "add", path: "/metadata/labels", value: { app: "shop" } },
      ],
    }),
  );
  await show("failed test", () =>
    api.patchNamespacedCustomObject({
      ...at,
      name: "a",
      body: [{ op: "test", path: "/spec/size", value: "l" }],
    }),
  );
  await show("stale", () => api.replaceNamespacedCustomObject({ ...at, name: "a", body: stale }));
  await show("selected", () =>
    api.listNamespacedCustomObject({ ...at, labelSelector: "app=shop" }),
  );
  await show("bad selector", () =>
    api.listNamespacedCustomObject({ ...at, labelSelector: "app=shop,," }),
  );
  await show("none selected", () =>
    api.listNamespacedCustomObject({ ...at, labelSelector: "app!=shop" }),
  );
  await show("delete all", () => api.deleteCollectionNamespacedCustomObject({ ...at }));
  await show("delete again", () => api.deleteNamespacedCustomObject({ ...at, name: "a" }));
}
