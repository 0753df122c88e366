import type { ErrorCode } from "@konverge/core";
import { Counter, type Registry } from "prom-client";

/** Why the HTTP API rejects a request before its work: its credentials, its permissions, or the rate of its caller. */
export type RejectionCode = Extract<
  ErrorCode,
  "unauthorized" | "forbidden" | "rate_limited" | "identity_unavailable"
>;
export const REJECTIONS: readonly RejectionCode[] = [
  "unauthorized",
  "forbidden",
  "rate_limited",
  "identity_unavailable",
];

/** The metrics of the HTTP API. The returned function counts one rejected request. */
export function createHttpApiMetrics(registry: Registry): (code: RejectionCode) => void {
  const rejected = new Counter({
    name: "konverge_api_rejected_requests_total",
    help: "Total number of rejected requests to the HTTP API by error code.",
    labelNames: ["code"],
    registers: [registry],
  });
  for (const code of REJECTIONS) rejected.inc({ code }, 0);
  return (code) => rejected.inc({ code });
}
