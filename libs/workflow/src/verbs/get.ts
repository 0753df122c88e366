import { deepFreeze, type ApiObject } from "@konverge/core";
import type { ReadonlyObject } from "@konverge/kube";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** @throws KubeApiError; `isNotFound` if the object does not exist */
export async function getObject<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
): Promise<ReadonlyObject<T>> {
  const { client, type, at } = reached;
  const object = await client.get(type, at);
  scope.noteSeen(reached, object);
  return deepFreeze(object) as ReadonlyObject<T>;
}
