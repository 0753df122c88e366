import type { ApiObject, ResourceType } from "@konverge/core";

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}
export interface Lease extends ApiObject {
  spec?: LeaseSpec;
}

export const LEASE: ResourceType<Lease> = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  resource: "leases",
  scope: "Namespaced",
};
