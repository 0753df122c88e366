import { defineConfig } from "konverge";
import { fleetRollout } from "./fleet-rollout.ts";

/** Two contexts of one kubeconfig. The runs belong to `east`; their steps use both. */
export default defineConfig({
  workflows: [fleetRollout],
  clusters: { east: { context: "east" }, west: { context: "west" } },
  settings: { cluster: "east" },
});
