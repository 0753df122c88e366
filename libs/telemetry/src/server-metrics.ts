import { Gauge, type Registry } from "prom-client";

/** The Redis server of a cluster. A figure that it does not report is undefined, and has no series. */
interface ServerMetrics {
  readonly usedBytes: number | undefined;
  /** 0 without a limit. */
  readonly maxBytes: number | undefined;
  readonly replicas: number | undefined;
  /** Bytes that the replica furthest behind has not acknowledged; 0 without replicas. */
  readonly replicaLagBytes: number | undefined;
  /** The clock of this process minus that of the server. */
  readonly clockAheadMs: number;
}

/** Reads the server at each scrape, until the returned function is called. */
export type ObserveServer = (read: () => Promise<ServerMetrics>) => () => void;

/** The metrics of the Redis server of each cluster, as this process reads them. */
export function createServerMetrics(registry: Registry): (cluster: string) => ObserveServer {
  const servers = new Map<() => Promise<ServerMetrics>, string>();
  let reading: Promise<ReadServer[]> | undefined;
  /** Reads each server once for all gauges of a scrape. */
  const readOnce = () => {
    reading ??= readServers(servers).finally(() => {
      reading = undefined;
    });
    return reading;
  };
  type Labels = { readonly kind?: string };
  type Values = readonly (readonly [labels: Labels, value: number | undefined])[];
  const gauge = (
    name: string,
    help: string,
    values: (server: ServerMetrics | undefined) => Values,
    labels: readonly "kind"[] = [],
  ) =>
    new Gauge({
      name: `konverge_redis_${name}`,
      help,
      labelNames: ["cluster", ...labels],
      registers: [registry],
      async collect() {
        const read = await readOnce();
        this.reset();
        for (const { cluster, server } of read) {
          for (const [more, value] of values(server)) {
            if (value !== undefined) this.set({ cluster, ...more }, value);
          }
        }
      },
    });
  gauge("up", "1 if this process can use Redis, else 0.", (server) => [
    [{}, server === undefined ? 0 : 1],
  ]);
  gauge(
    "memory_bytes",
    "Memory of Redis: used, and max if it is limited.",
    (server) => (server === undefined ? [] : memoryOf(server)),
    ["kind"],
  );
  gauge("replicas", "Number of connected replicas of Redis.", (server) => [[{}, server?.replicas]]);
  gauge("replica_lag_bytes", "Writes that the slowest replica has not acknowledged.", (server) => [
    [{}, server?.replicaLagBytes],
  ]);
  gauge("clock_ahead_seconds", "The clock of this process minus that of Redis.", (server) => [
    [{}, server === undefined ? undefined : server.clockAheadMs / 1_000],
  ]);
  return (cluster) => (read) => {
    servers.set(read, cluster);
    return () => servers.delete(read);
  };
}

function memoryOf({ usedBytes, maxBytes }: ServerMetrics) {
  const used = [{ kind: "used" }, usedBytes] as const;
  return maxBytes === 0 ? [used] : [used, [{ kind: "max" }, maxBytes] as const];
}

interface ReadServer {
  readonly cluster: string;
  /** Undefined if it cannot be read. */
  readonly server: ServerMetrics | undefined;
}

async function readServers(
  servers: ReadonlyMap<() => Promise<ServerMetrics>, string>,
): Promise<ReadServer[]> {
  return await Promise.all(
    [...servers].map(async ([read, cluster]) => ({
      cluster,
      server: await read().catch(() => undefined),
    })),
  );
}
