import { KonvergeError } from "@konverge/core";
import { isForbidden, type KubeClient } from "@konverge/kube";
import { Lease } from "@konverge/kube/kinds";
import { leaseHolder } from "../config/lease-holder.ts";

/** Identities of workers: host name and process ID, with a number for further workers of one process. */
const WORKER_ID = /^[^_]+-\d+(-\d+)?$/;

export interface OwnFleet {
  /** Prefix of the names of its Leases. */
  readonly prefix: string;
  readonly leaseNamespace: string;
  readonly controllers: readonly { readonly name: string }[];
}

/**
 * Rejects a cluster in which workers of another installation run the same controllers: both would write the same objects.
 * @throws KonvergeError `invalid_request` with the Lease and its holder
 */
export async function assertNoOtherFleet(
  client: KubeClient,
  { prefix, leaseNamespace, controllers }: OwnFleet,
): Promise<void> {
  const { items } = await client.list(Lease).catch((error: unknown) => {
    if (!isForbidden(error)) throw error;
    return client.list(Lease, { namespace: leaseNamespace });
  });
  for (const { name } of controllers) {
    const other = items.find(
      (found) =>
        found.metadata.name.endsWith(`-${name}`) &&
        !found.metadata.name.startsWith(`${prefix}-`) &&
        WORKER_ID.test(leaseHolder(found) ?? ""),
    );
    if (other === undefined) continue;
    const lease = `${other.metadata.namespace ?? ""}/${other.metadata.name}`;
    throw new KonvergeError(
      "invalid_request",
      `controller "${name}" already runs in this cluster: ${other.spec?.holderIdentity ?? ""} holds the Lease ${lease}; ` +
        "a second fleet would write the same objects. Stop that worker, or use --cluster embedded or another cluster",
    );
  }
}
