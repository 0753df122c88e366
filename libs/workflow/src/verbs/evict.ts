import { evictPod, ignoreNotFound, type EvictOptions } from "@konverge/kube";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Evicts a pod, never another one with its name. Fails with 429 while a disruption budget forbids it. */
export async function evict(
  scope: VerbScope,
  { client, type, at, uid: given }: Reached,
  { gracePeriodSeconds }: EvictOptions,
): Promise<void> {
  const uid = given ?? (await client.get(type, at).catch(ignoreNotFound))?.metadata.uid;
  if (uid === undefined) return;
  await scope.assertHeld();
  await evictPod(client, type, { at, uid, gracePeriodSeconds });
}
