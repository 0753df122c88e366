import type { ChildStarter } from "./execution/await-child.ts";
import { terminateRun } from "./execution/terminate-run.ts";
import type { Waker } from "./execution/wake-followers.ts";
import type { RunStore } from "./store/run-store.ts";
import { startRun } from "./store/start-run.ts";

export function createChildStarter(store: RunStore, { wake, notify }: Waker): ChildStarter {
  return {
    start: (run) => startRun(store, wake, run),
    async cancel(ref, request) {
      const answer = await store.cancel(ref, request);
      // A child whose cancellation is pending passes this one to its own children.
      if (answer === "requested" || answer === "pending") await wake(ref, "cancel");
    },
    async terminate(ref, request) {
      await terminateRun({ store, wake, notify }, ref, request);
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
