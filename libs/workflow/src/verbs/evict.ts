import { ignoreNotFound, isNotFound, isReplaced } from "@konverge/kube";
import { KonvergeError } from "@konverge/core";
import type { EvictOptions } from "../define/step-verbs.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Evicts a pod, never another one with its name. Fails with 429 while a disruption budget forbids it. */
export async function evictPod(
  scope: VerbScope,
  { client, type, at, uid: given, label }: Reached,
  { gracePeriodSeconds }: EvictOptions,
): Promise<void> {
  const { name, namespace } = at;
  if (type.group !== "" || type.resource !== "pods" || namespace === undefined) {
    throw new KonvergeError(
      "invalid_request",
      `${label} cannot be evicted; pass a Pod with its namespace`,
    );
  }
  const uid = given ?? (await client.get(type, at).catch(ignoreNotFound))?.metadata.uid;
  if (uid === undefined) return;
  await scope.assertHeld();
  const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
  try {
    await client.raw({
      method: "POST",
      path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`,
      body: {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name, namespace },
        deleteOptions: { preconditions: { uid }, ...grace },
      },
    });
  } catch (error) {
    if (!isNotFound(error) && !isReplaced(error)) throw error;
  }
}
