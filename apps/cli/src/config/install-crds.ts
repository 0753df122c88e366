import { KonvergeError, sleepMs, type ApiObject, type ResourceType } from "@konverge/core";
import { isServed, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";

/** A real server takes about 100 ms to serve a new definition. */
const SERVED_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 25;

/** Applies the CRDs of the resources and waits until the server serves them. @throws KonvergeError `crd_mismatch` */
export async function installCrds(
  client: KubeClient,
  resources: readonly (ResourceType & { crd(): ApiObject })[],
  signal?: AbortSignal,
): Promise<void> {
  for (const resource of resources) await client.apply(CustomResourceDefinition, resource.crd());
  const endMs = performance.now() + SERVED_LIMIT_MS;
  for (const resource of resources) {
    while (!(await isServed(client, resource))) {
      if (performance.now() >= endMs) {
        throw new KonvergeError(
          "crd_mismatch",
          `the API server accepted the CRD of ${resource.kind}, but does not serve it after ${SERVED_LIMIT_MS / 1_000} s; check its conditions with \`kubectl get crd ${resource.resource}.${resource.group} -o yaml\``,
        );
      }
      await sleepMs(LOOK_EVERY_MS, signal);
    }
  }
}
