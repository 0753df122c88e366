import { Gauge, type Registry } from "prom-client";

/** The kind of a target to which the audit log is streamed. */
export type AuditSink = "file" | "http";

/** Reads the lag of a sink at each scrape, until the returned function is called. */
export type ObserveAuditStream = (sink: AuditSink, readLagMs: () => Promise<number>) => () => void;

/** The metric of the audit log's streams. It has no series while the lag cannot be read. */
export function createAuditMetrics(registry: Registry): ObserveAuditStream {
  const sinks = new Map<() => Promise<number>, AuditSink>();
  const lag: Gauge<"sink"> = new Gauge({
    name: "konverge_audit_stream_lag_seconds",
    help: "Age of the oldest audit entry that was not delivered to the sink, or 0.",
    labelNames: ["sink"],
    registers: [registry],
    async collect() {
      const read = await Promise.all(
        [...sinks].map(async ([readLagMs, sink]) => ({
          sink,
          lagMs: await readLagMs().catch(() => undefined),
        })),
      );
      lag.reset();
      for (const { sink, lagMs } of read) {
        if (lagMs !== undefined) lag.set({ sink }, lagMs / 1_000);
      }
    },
  });
  return (sink, readLagMs) => {
    sinks.set(readLagMs, sink);
    return () => sinks.delete(readLagMs);
  };
}
