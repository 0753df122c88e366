import { defineConfig, defineController, defineResource, TerminalError } from "konverge";
import { z } from "zod";
const Job = defineResource({
  group: "doctor.test.konverge.dev",
  version: "v1",
  kind: "Task",
  spec: z.object({ size: z.int() }),
});
export const task = defineController({
  name: "task",
  for: Job,
  reconcile: async () => {
    throw new TerminalError("as planned");
  },
});
export default defineConfig({ controllers: [task], clusters: { default: { shards: 1 } } });
