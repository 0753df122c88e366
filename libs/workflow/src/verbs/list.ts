import type { ApiObject } from "@konverge/core";
import { freeze } from "./get.ts";
import { rememberSecret } from "./seen-secrets.ts";
import type { ListTarget, Seen } from "./step-verbs.ts";
import type { VerbScope } from "./verb-scope.ts";

export async function listObjects<T extends ApiObject>(
  scope: VerbScope,
  { apiVersion, kind, namespace, labelSelector, fieldSelector }: ListTarget,
): Promise<readonly Seen<T>[]> {
  const { client, type } = await scope.reachKind({ apiVersion, kind });
  const { items } = await client.list(type, {
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  });
  if (client.isSensitive(type)) for (const item of items) rememberSecret(item);
  return items.map((item) => freeze(item) as Seen<T>);
}
