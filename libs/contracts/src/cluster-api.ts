import { z } from "zod";
import { guardViewSchema } from "./guard-api.ts";

const clusterState = z.enum(["engaging", "engaged", "failing", "disengaging"]);
const standing = {
  state: clusterState,
  /** The time of the last change of the state. */
  since: z.string(),
  /** The last error; only for callers without a limited scope. */
  reason: z.string().optional(),
};

/** Response of `GET /v1/clusters`: the clusters that workers have reported in the last 15 s, by name. */
export const clusterListSchema = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      /** The configuration, or the provider. */
      source: z.string(),
      /** The most severe state of the workers. */
      ...standing,
      /** Version of the API server. */
      serverVersion: z.string().optional(),
      /** State of the circuit breaker. */
      breaker: guardViewSchema.shape.breaker.shape.state.optional(),
      workers: z.array(z.object({ workerId: z.string(), ...standing })),
    }),
  ),
});

export type ClusterList = z.infer<typeof clusterListSchema>;
