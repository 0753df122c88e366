import type { ErrorCode } from "@konverge/core";
import { Counter, type Registry } from "prom-client";

/** A delivery of an inbound source to the HTTP API. */
export interface ReceivedDelivery {
  readonly cluster: string;
  /** Its name, if a worker has announced it: callers cannot create series. */
  readonly source: string;
  readonly result: "accepted" | "duplicate" | ErrorCode;
}

/** The returned function counts one delivery. */
export function createDeliveryMetrics(registry: Registry): (delivery: ReceivedDelivery) => void {
  const deliveries = new Counter({
    name: "konverge_inbound_deliveries_total",
    help: "Total number of deliveries to inbound sources by result: accepted, duplicate or an error code.",
    labelNames: ["cluster", "source", "result"],
    registers: [registry],
  });
  return (delivery) => deliveries.inc({ ...delivery });
}
