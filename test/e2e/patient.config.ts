import { defineConfig, defineController } from "konverge";
import { CONFIG_MAP } from "../bench/config-map.ts";

/** A handler that ends only when it is aborted, and then at once. */
const patient = defineController({
  name: "patient",
  for: CONFIG_MAP,
  async reconcile({ log, signal }) {
    log.info({}, "the handler waits");
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => {
        log.info({}, "the handler was aborted");
        resolve();
      });
    });
  },
});

export default defineConfig({
  controllers: [patient],
  settings: { shutdownGrace: "10m", leaseDuration: "3s" },
});
