import { conditions, defineResource } from "konverge";
import { z } from "zod";

/** What people ask for. The types, the CRD and the check at start come from here. */
export const Greeting = defineResource({
  group: "example.com",
  version: "v1",
  kind: "Greeting",
  spec: z.object({
    name: z.string().min(1),
    /** Filled in by the API server where it is left out. */
    salutation: z.string().default("Hello"),
  }),
  status: z.object({ text: z.string(), observedGeneration: z.int(), conditions }),
});
