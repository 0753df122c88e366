import type { ApiObject } from "@konverge/core";

/** Any object of Kubernetes, ready to be applied. */
export type Manifest = ApiObject & { readonly [field: string]: unknown };

/** What all objects of one installation have in common. */
export interface Installation {
  /** Of the deployments, the service account and the roles. */
  readonly name: string;
  readonly namespace: string;
  /** Tells the builds of a rolling fleet apart. */
  readonly image: string;
}

export type Component = "worker" | "watcher" | "api";

/** The recommended labels (kubernetes.io/docs, "Recommended Labels"). */
export function labelsOf({ name }: Installation, component?: Component): Record<string, string> {
  return {
    "app.kubernetes.io/name": "konverge",
    "app.kubernetes.io/instance": name,
    ...(component === undefined ? {} : { "app.kubernetes.io/component": component }),
    "app.kubernetes.io/managed-by": "konverge",
  };
}

/** What never changes in the life of a Deployment, and no more. */
export function selectorOf({ name }: Installation, component: Component): Record<string, string> {
  return {
    "app.kubernetes.io/name": "konverge",
    "app.kubernetes.io/instance": name,
    "app.kubernetes.io/component": component,
  };
}
