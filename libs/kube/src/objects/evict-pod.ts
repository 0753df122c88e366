import { defined, KonvergeError, type ResourceType } from "@konverge/core";
import type { KubeClient } from "../contract/kube-client.ts";
import { isNotFound, isReplaced } from "../errors/error-predicates.ts";
import { objectPath, type NamespacedName } from "../names/resource-path.ts";

interface Eviction {
  readonly at: NamespacedName;
  /** Of the Pod: another one with its name is not evicted. */
  readonly uid: string | undefined;
  readonly gracePeriodSeconds: number | undefined;
}

/**
 * Evicts a Pod. Returns false if it is deleted or replaced already. @throws KonvergeError `invalid_request` for another kind;
 * KubeApiError 429 while a disruption budget forbids it
 */
export async function evictPod(
  client: KubeClient,
  type: ResourceType,
  { at, uid, gracePeriodSeconds }: Eviction,
): Promise<boolean> {
  const { name, namespace } = at;
  if (type.group !== "" || type.resource !== "pods" || namespace === undefined) {
    throw new KonvergeError(
      "invalid_request",
      `${type.kind} ${name} cannot be evicted; pass a Pod with its namespace`,
    );
  }
  const preconditions = uid === undefined ? {} : { preconditions: { uid } };
  try {
    await client.raw({
      method: "POST",
      path: objectPath(type, at, "eviction"),
      body: {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name, namespace },
        deleteOptions: { ...preconditions, ...defined({ gracePeriodSeconds }) },
      },
    });
    return true;
  } catch (error) {
    if (!isNotFound(error) && !isReplaced(error)) throw error;
    return false;
  }
}
