import { defined, type ObjectKey } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import type { Controller } from "./define-controller.ts";

/** Returns the key of an object that a controller reconciles in a cluster. */
export function reconciledKey(
  { name: controller, for: { group, resource } }: Pick<Controller, "name" | "for">,
  cluster: string,
  { namespace, name }: NamespacedName,
): ObjectKey {
  return { controller, cluster, resource, group, ...defined({ namespace }), name };
}
