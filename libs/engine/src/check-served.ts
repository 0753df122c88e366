import { formatApiVersion, isKonvergeError, KonvergeError } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { Controller } from "./define-controller.ts";

/** A controller for a kind that the cluster does not serve would wait for ever; better not to start. */
export async function checkServed(controller: Controller, client: KubeClient): Promise<void> {
  const types = [controller.for, ...controller.owns, ...controller.watches.map(({ type }) => type)];
  for (const { group, version, kind, resource } of types) {
    const apiVersion = formatApiVersion(group, version);
    const served = await client.resolveType(apiVersion, kind).catch((error: unknown) => {
      // A server that could not be asked has not said no.
      if (!isKonvergeError(error) || error.code !== "not_found") throw error;
      throw new KonvergeError(
        "crd_mismatch",
        `controller "${controller.name}": the cluster does not serve ${kind} in ${apiVersion}; install its CRD first (konverge crds --config <file> | kubectl apply -f -)`,
        { cause: error },
      );
    });
    if (served.resource !== resource) {
      throw new KonvergeError(
        "crd_mismatch",
        `controller "${controller.name}": the cluster serves ${kind} as "${served.resource}", the definition says "${resource}"; set plural to "${served.resource}"`,
      );
    }
  }
}
