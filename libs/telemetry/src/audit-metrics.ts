import { Counter, Gauge, type Registry } from "prom-client";

/** The kind of a target to which the audit log is streamed. */
export type AuditSink = "file" | "http";

/** What a sink has received. */
interface Delivery {
  readonly lagMs: number;
  readonly lost: number;
}

/** Reads the deliveries of a sink at each scrape, until the returned function is called. */
export type ObserveAuditStream = (sink: AuditSink, read: () => Promise<Delivery>) => () => void;

/** The metrics of the audit log's streams. They have no series while the state in Redis cannot be read. */
export function createAuditMetrics(registry: Registry): ObserveAuditStream {
  const sinks = new Map<() => Promise<Delivery>, AuditSink>();
  const labelNames = ["sink"] as const;
  const registers = [registry];
  const readNow = async () => {
    const all = await Promise.all(
      [...sinks].map(([read, sink]) =>
        read().then(
          (delivery) => [{ sink, ...delivery }],
          () => [],
        ),
      ),
    );
    return all.flat();
  };
  let reading: ReturnType<typeof readNow> | undefined;
  /** Both metrics of a scrape share a read. */
  const readAll = () => (reading ??= readNow().finally(() => (reading = undefined)));
  const lag: Gauge<"sink"> = new Gauge({
    name: "konverge_audit_stream_lag_seconds",
    help: "Age of the oldest audit entry that was not delivered to the sink, or 0.",
    labelNames,
    registers,
    async collect() {
      const read = await readAll();
      lag.reset();
      for (const { sink, lagMs } of read) lag.set({ sink }, lagMs / 1_000);
    },
  });
  const lost: Counter<"sink"> = new Counter({
    name: "konverge_audit_entries_lost_total",
    help: "Total number of audit entries that retention removed before they were delivered to the sink.",
    labelNames,
    registers,
    async collect() {
      const read = await readAll();
      // The total of all processes, which Redis has.
      lost.reset();
      for (const { sink, lost: total } of read) lost.inc({ sink }, total);
    },
  });
  return (sink, read) => {
    sinks.set(read, sink);
    return () => sinks.delete(read);
  };
}
