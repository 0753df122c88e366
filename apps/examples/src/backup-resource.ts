import { conditions, defineResource } from "konverge";
import { z } from "zod";

/** A copy of a ConfigMap, kept for a time. */
export const Backup = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Backup",
  spec: z.object({
    /** Name of the ConfigMap, in the backup's namespace. */
    source: z.string().min(1),
    // A default of the schema is filled in by the API server when the object is created: kubectl shows it, and the handler
    // never meets a backup without it.
    retentionDays: z.number().min(0).default(30),
  }),
  status: z.object({
    phase: z.enum(["Pending", "Stored", "Expired"]),
    /** Source of the copy that there is. */
    storedFrom: z.string(),
    storedAt: z.string().meta({ format: "date-time" }),
    observedGeneration: z.int(),
    conditions,
  }),
});
