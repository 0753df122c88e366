import { conditions, defineResource } from "konverge";
import { z } from "zod";

/** A copy of a ConfigMap for a limited time. */
export const Backup = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Backup",
  spec: z.object({
    /** Name of the ConfigMap, in the backup's namespace. */
    source: z.string().min(1),
    // The API server applies defaults of the schema on creation: kubectl shows them, and the handler never gets a backup
    // without them.
    retentionDays: z.number().min(0).default(30),
  }),
  status: z.object({
    phase: z.enum(["Pending", "Stored", "Expired"]),
    /** Source of the existing copy. */
    storedFrom: z.string(),
    storedAt: z.string().meta({ format: "date-time" }),
    observedGeneration: z.int(),
    conditions,
  }),
});
