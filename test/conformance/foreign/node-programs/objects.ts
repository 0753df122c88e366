import { KubernetesObjectApi, PatchStrategy } from "@kubernetes/client-node";
import { outcomeOf, type World } from "./world.ts";

/** KubernetesObjectApi, which finds the path of a kind in the discovery documents. */
export async function objects({ config, namespace, say }: World): Promise<void> {
  const api = KubernetesObjectApi.makeApiClient(config);
  const show = async (title: string, call: () => Promise<unknown>) =>
    say(`${title}: ${await outcomeOf(call)}`);
  const map = (data: Record<string, string>) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace },
    data,
  });
  const part = {
    apiVersion: "foreign.konverge.dev/v1",
    kind: "Part",
    metadata: { name: "wheel", namespace },
    spec: { size: "s" },
  };
  await show("create", () => api.create(map({ a: "1" })));
  await show("create a part", () => api.create(part));
  await show("merge", () => api.patch(map({ b: "2" })));
  const apply = (more: object, force: boolean) =>
    api.patch(
      { ...part, ...more },
      undefined,
      undefined,
      "other",
      force,
      PatchStrategy.ServerSideApply,
    );
  await show("apply", () => apply({ spec: { size: "m" } }, false));
  await show("apply with force", () => apply({ spec: { size: "m" } }, true));
  await show("replace", () => api.replace(map({ c: "3" })));
  await show("read", () => api.read(map({})));
  await show("list", () => api.list("foreign.konverge.dev/v1", "Part", namespace));
  const crds = () =>
    api.read({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "none" },
    });
  await show("cluster-scoped", crds);
  await show("delete", () =>
    api.delete(map({}), undefined, undefined, undefined, undefined, "Background"),
  );
  await show("delete a part", () => api.delete(part));
  await show("deleted", () => api.read(part));
}
