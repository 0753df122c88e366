import { defined, type ApiObject } from "@konverge/core";

/** A Kubernetes object to apply. */
export type Manifest = ApiObject & { readonly [field: string]: unknown };

/** The common properties of all objects of one installation. */
export interface Installation {
  /** Name of the ServiceAccount of the workers and of the roles, and prefix of the Deployments. */
  readonly name: string;
  readonly namespace: string;
  /** Container image, also used as the build ID. */
  readonly image: string;
}

export type Component = "worker" | "watcher" | "api";

/** The recommended labels (kubernetes.io/docs, "Recommended Labels"). */
export function labelsOf({ name }: Installation, component?: Component): Record<string, string> {
  return {
    "app.kubernetes.io/name": "konverge",
    "app.kubernetes.io/instance": name,
    ...defined({ "app.kubernetes.io/component": component }),
    "app.kubernetes.io/managed-by": "konverge",
  };
}

/** Returns the labels of the selector, which is immutable. */
export function selectorOf({ name }: Installation, component: Component): Record<string, string> {
  return {
    "app.kubernetes.io/name": "konverge",
    "app.kubernetes.io/instance": name,
    "app.kubernetes.io/component": component,
  };
}
