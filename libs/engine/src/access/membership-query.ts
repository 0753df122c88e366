import type { KubeClient } from "@konverge/kube";

/** How an attempt finds out whether a namespace is in the scope of its controller. */
export interface MembershipQuery {
  /** A version of the namespaces that the answer must include. */
  readonly atLeast: string | undefined;
  readonly client: KubeClient;
}
