import { defined, type ApiObject } from "@konverge/core";
import { ignoreNotFound, type KubeClient, type NamespacedName } from "@konverge/kube";
import type { Controller } from "../define/define-controller.ts";

/**
 * Reads an object of the reconciled kind. Undefined if it does not exist or does not match the selectors of `for`: with selectors,
 * the API server decides.
 */
export async function readSelected(
  client: KubeClient,
  { for: type, sources: [{ labels, fields }] }: Controller,
  {
    namespace,
    name,
    atVersion: resourceVersion,
  }: NamespacedName & { readonly atVersion?: string | undefined },
): Promise<ApiObject | undefined> {
  if (labels === undefined && fields === undefined) {
    const target = { name, ...defined({ namespace }) };
    return await client.get(type, target, defined({ resourceVersion })).catch(ignoreNotFound);
  }
  const named = `metadata.name=${name}`;
  const { items } = await client.listPage(type, {
    ...defined({ namespace, labelSelector: labels, resourceVersion }),
    fieldSelector: fields === undefined ? named : `${named},${fields}`,
    // A limit would require exactly this version instead of at least.
    limit: 0,
  });
  return items[0];
}
