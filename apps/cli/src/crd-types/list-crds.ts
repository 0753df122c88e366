import { createLocalGate, type JsonObject } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeCredentialsOptions } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { readVersion } from "../process/version.ts";

/** Lists the CRDs of the cluster of a kubeconfig. */
export async function listCrds(kubeconfig: KubeCredentialsOptions): Promise<JsonObject[]> {
  const client = createKubeClient({
    credentials: loadKubeCredentials(kubeconfig),
    gate: createLocalGate({ ratePerSecond: 50, burst: 50 }),
    userAgent: `konverge-cli/${readVersion()}`,
  });
  try {
    const { items } = await client.list(CustomResourceDefinition);
    return items as unknown as JsonObject[];
  } finally {
    await client.close();
  }
}
