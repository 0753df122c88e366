import type { ApiObject, ResourceType } from "@konverge/core";

/** The kinds of apps/examples as plain types: the demo loads the examples only as a user's files. */
const custom = { group: "demo.konverge.dev", version: "v1", scope: "Namespaced" } as const;

export interface PoolObject extends ApiObject {
  spec: { replicas: number };
  status?: {
    machines?: number;
    observedGeneration?: number;
    conditions?: {
      type: string;
      status: string;
      reason?: string;
      message?: string;
      lastTransitionTime?: string;
    }[];
  };
}
export const NodePool: ResourceType<PoolObject> = {
  ...custom,
  kind: "NodePool",
  resource: "nodepools",
};

export interface ScalerObject extends ApiObject {
  spec: { poolRef: string; min: number; max: number; targetLoad: number };
  status?: { desiredReplicas?: number; observedGeneration?: number };
}
export const Autoscaler: ResourceType<ScalerObject> = {
  ...custom,
  kind: "Autoscaler",
  resource: "autoscalers",
};

export interface MachineObject extends ApiObject {
  spec?: { image?: string };
}
export const Machine: ResourceType<MachineObject> = {
  ...custom,
  kind: "Machine",
  resource: "machines",
};
