import { conditions, defineResource } from "konverge";
import { z } from "zod";

/** A requested greeting. Defines the types, the CRD and the validation at startup. */
export const Greeting = defineResource({
  group: "example.com",
  version: "v1",
  kind: "Greeting",
  spec: z.object({
    name: z.string().min(1),
    /** The API server sets this default. */
    salutation: z.string().default("Hello"),
  }),
  status: z.object({ text: z.string(), observedGeneration: z.int(), conditions }),
});
