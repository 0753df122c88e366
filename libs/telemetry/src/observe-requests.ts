import type { ObjectKey, Trigger } from "@konverge/core";
import type { RequestMetrics } from "./request-metrics.ts";
import type { Tracing } from "./tracing.ts";

interface Observed {
  readonly traceparent?: string;
  readonly ended: (result: { readonly coalesced: boolean } | Error) => void;
}

/** Returns the observer that a queue calls for each request, to count and trace it. */
export function observeRequests(
  metrics: Pick<RequestMetrics, "requested">,
  tracing: Tracing | undefined,
): (key: ObjectKey, trigger: Trigger) => Observed {
  return (key, trigger) => {
    const span = tracing?.startRequest(key, trigger);
    return {
      ...(span === undefined ? {} : { traceparent: span.traceparent }),
      ended(result) {
        span?.end(result);
        if (result instanceof Error) return;
        const { cluster, controller } = key;
        metrics.requested({
          cluster,
          controller,
          trigger: trigger.kind,
          coalesced: result.coalesced,
        });
      },
    };
  };
}
