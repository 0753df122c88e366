import { createApi, openQueueAccess } from "@konverge/api";
import { openGuardControl, type GuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished } from "vitest";
import type { QueueHarness } from "../queue/queue-harness.ts";

export interface OpenApi {
  readonly guards: GuardControl;
  readonly fetch: (request: Request) => Promise<Response>;
}

/** Opens an API over the Redis of the workers, without access to the cluster; it is closed after the test. */
export function openApi({ prefix, apiTarget: redis }: QueueHarness, user = "test"): OpenApi {
  const access = openQueueAccess({ redis, prefix, onError: () => undefined });
  const guards = openGuardControl({ redis, prefix });
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: undefined,
    inProcess: { user },
    cluster: "default",
    onError: (error) => expect.unreachable(String(error)),
  });
  onTestFinished(async () => {
    api.close();
    await Promise.all([access.close(), guards.close()]);
  });
  return { guards, fetch: async (request) => await api.fetch(request) };
}
