import { defineResource } from "@konverge/engine";
import { z } from "zod";

const GROUP = { group: "planted.konverge.dev", version: "v1" };

/** The kind that the planted controllers reconcile. */
export const App = defineResource({
  ...GROUP,
  kind: "App",
  spec: z.object({
    replicas: z.int().default(1),
    note: z.string().optional(),
    stamp: z.string().optional(),
  }),
  status: z.object({
    phase: z.string(),
    count: z.int(),
    child: z.string(),
    checkedAt: z.string(),
    observedGeneration: z.int(),
  }),
});

export type AppObject = NonNullable<typeof App.objectType>;
