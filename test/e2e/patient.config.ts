import { defineConfig, defineController } from "konverge";
import { ConfigMap } from "konverge/kinds";

/** A handler that ends only when it is aborted, and then at once. */
const patient = defineController({
  name: "patient",
  for: ConfigMap,
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
