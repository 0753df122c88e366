import { deepFreeze, defined, type ApiObject } from "@konverge/core";
import type { ListTarget, ReadonlyObject } from "../define/step-verbs.ts";
import type { VerbScope } from "./verb-scope.ts";

export async function listObjects<T extends ApiObject>(
  scope: VerbScope,
  { apiVersion, kind, namespace, labelSelector, fieldSelector }: ListTarget,
): Promise<readonly ReadonlyObject<T>[]> {
  const reached = await scope.reachKind({ apiVersion, kind });
  const { client, type } = reached;
  const { items } = await client.list(type, {
    ...defined({ namespace, labelSelector, fieldSelector }),
  });
  for (const item of items) scope.noteSeen(reached, item);
  return items.map((item) => deepFreeze(item) as ReadonlyObject<T>);
}
