import { conditions, defineResource } from "konverge";
import { z } from "zod";

const GROUP = { group: "demo.konverge.dev", version: "v1" };

/** A number of machines, `spec.replicas`. One operator writes the spec, another the status. */
export const NodePool = defineResource({
  ...GROUP,
  kind: "NodePool",
  spec: z.object({ replicas: z.int().min(0).default(1) }),
  status: z.object({ machines: z.int(), observedGeneration: z.int(), conditions }),
});

/** Changes `spec.replicas` of its pool by the load. */
export const Autoscaler = defineResource({
  ...GROUP,
  kind: "Autoscaler",
  spec: z.object({
    poolRef: z.string().min(1),
    min: z.int().min(0).default(1),
    max: z.int().min(1),
    /** Load per machine. */
    targetLoad: z.int().min(1),
  }),
  status: z.object({ desiredReplicas: z.int(), observedGeneration: z.int() }),
});

export const Machine = defineResource({
  ...GROUP,
  kind: "Machine",
  spec: z.object({ image: z.string().optional() }),
});
