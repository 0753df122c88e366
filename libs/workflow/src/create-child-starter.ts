import type { ChildStarter } from "./execution/await-child.ts";
import type { RunStore } from "./store/run-store.ts";
import { startRun, type Wake } from "./store/start-run.ts";

export function createChildStarter(store: RunStore, wake: Wake): ChildStarter {
  return {
    async start(run) {
      const started = await startRun(store, wake, run);
      return "status" in started ? started : undefined;
    },
    async cancel(ref, request) {
      if ((await store.cancel(ref, request)) === "requested") await wake(ref, "cancel");
    },
    get: (ref) => store.get(ref),
    async signal(ref, signal) {
      const stored = await store.signal(ref, signal);
      // The sender of a duplicate may have died before it requested the execution.
      if (stored === "stored" || stored === "duplicate") await wake(ref, "signal");
      return stored;
    },
  };
}
