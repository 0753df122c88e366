import { deepFreeze, type ApiObject } from "@konverge/core";
import { ignoreNotFound } from "@konverge/kube";
import type { ReadonlyObject } from "../define/step-verbs.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

export async function getObject<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
): Promise<ReadonlyObject<T> | undefined> {
  const { client, type, at } = reached;
  const object = await client.get(type, at).catch(ignoreNotFound);
  if (object === undefined) return undefined;
  scope.noteSeen(reached, object);
  return deepFreeze(object) as ReadonlyObject<T>;
}
