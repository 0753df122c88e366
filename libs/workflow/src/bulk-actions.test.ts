import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { actOnRuns, type BulkPorts } from "./bulk-actions.ts";
import { createMemoryRunStore } from "./testing/memory-run-store.ts";

test.each(["run_active", "run_ended", "not_found"] as const)(
  "a run that changed since its page was read (%s) is unchanged",
  async (code) => {
    const store = createMemoryRunStore({ now: () => 0 });
    await store.start({ workflow: "deploy", id: "a", version: 1, input: null });
    const ports: BulkPorts = {
      store,
      wake: async () => undefined,
      act: async () => await Promise.reject(new KonvergeError(code, "changed")),
    };
    expect(await actOnRuns(ports, ["deploy"], { action: "cancel" })).toMatchObject({
      matched: 1,
      unchanged: 1,
      failed: 0,
    });
  },
);
