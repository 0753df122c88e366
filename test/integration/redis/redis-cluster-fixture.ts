import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { until } from "../../support/until.ts";

/** Time after which the others consider an unresponsive node failed, in ms. The default of 15 s is for networks. */
const NODE_TIMEOUT_MS = 1_000;
const SLOTS = 16_384;

/** A Redis Cluster on 127.0.0.1 for one test. */
export interface RunningRedisCluster extends AsyncDisposable {
  /** `redis+cluster://…` with every primary. */
  readonly url: string;
  readonly primaries: RunningRedis[];
  /** Replica of the first primary, if requested. */
  readonly replica: RunningRedis | undefined;
  /** Starts a killed primary with its data. */
  restart(index: number): Promise<void>;
}

const clusterArgs = [
  "--cluster-enabled",
  "yes",
  "--cluster-node-timeout",
  String(NODE_TIMEOUT_MS),
  // An unavailable node stops its own slots only.
  "--cluster-require-full-coverage",
  "no",
  "--cluster-replica-validity-factor",
  "0",
  "--appendfsync",
  "always",
];

/** Nodes communicate on their port + 10000; both are below the range of ephemeral ports. */
const BUS_OFFSET = 10_000;
const FIRST_PORT = 15_000;
const PORTS = 7_000;

interface ClusterFixtureOptions {
  readonly replica?: boolean;
  /** Files and settings for TLS. The port for TLS is `TLS_OFFSET` above the one without, which administrators use. */
  readonly tls?: Readonly<Record<string, string>>;
}

/** A port for TLS is between the others. */
export const TLS_OFFSET = 7_000;

/** Returns the arguments of a node. Clients receive the ports for TLS of other nodes only if nodes use TLS as well. */
function argsOf(port: number, tls: Readonly<Record<string, string>> | undefined): string[] {
  if (tls === undefined) return clusterArgs;
  const ports = { "tls-port": port + TLS_OFFSET, "cluster-port": port + BUS_OFFSET };
  const settings = { ...ports, "tls-cluster": "yes", ...tls };
  return [
    ...clusterArgs,
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
  ];
}

async function startNode(parent: string, tls: ClusterFixtureOptions["tls"]): Promise<RunningRedis> {
  for (let tries = 1; ; tries += 1) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    try {
      const extraArgs = argsOf(port, tls);
      return await startRedis({ dir: join(parent, String(port)), port, extraArgs });
    } catch (error) {
      if (tries >= 5) throw error;
    }
  }
}

/** Starts three primaries with a third of the slots each, and a replica of the first if requested. */
export async function startRedisCluster(
  options: ClusterFixtureOptions = {},
): Promise<RunningRedisCluster> {
  const { tls } = options;
  const dir = mkdtempSync(join(tmpdir(), "konverge-redis-cluster-"));
  const servers: RunningRedis[] = [];
  const clients: Redis[] = [];
  const stop = async () => {
    for (const client of clients) client.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const count = options.replica === true ? 4 : 3;
    for (let index = 0; index < count; index += 1) servers.push(await startNode(dir, tls));
    for (const { port } of servers) clients.push(quiet(new Redis({ port })));
    const primaries = clients.slice(0, 3);
    await Promise.all(
      primaries.map(async (client, index) => {
        const slotOf = (third: number) => Math.floor((SLOTS * third) / 3);
        await client.cluster("SET-CONFIG-EPOCH", index + 1);
        const first = slotOf(index);
        const own = Array.from({ length: slotOf(index + 1) - first }, (_, at) => first + at);
        await client.cluster("ADDSLOTS", ...own);
      }),
    );
    const [first] = clients;
    if (first === undefined) throw new Error("no node was started");
    for (const { port } of servers.slice(1)) {
      const known = tls === undefined ? port : port + TLS_OFFSET;
      await first.cluster("MEET", "127.0.0.1", known, port + BUS_OFFSET);
    }
    await until("all nodes know each other", async () => {
      const known = await Promise.all(
        clients.map(async (client) => String(await client.cluster("INFO"))),
      );
      return known.every(
        (info) =>
          info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${count}`),
      );
    });
    const replica = servers[3];
    if (replica !== undefined) {
      await clients[3]?.cluster("REPLICATE", String(await first.cluster("MYID")));
      await until("the replica has the data", async () =>
        (await clients[3]?.info("replication"))?.includes("master_link_status:up"),
      );
    }
    return {
      url: `redis+cluster://${servers
        .slice(0, 3)
        .map(({ port }) => `127.0.0.1:${port}`)
        .join(",")}`,
      primaries: servers.slice(0, 3),
      replica,
      async restart(index) {
        const dead = servers[index];
        if (dead === undefined) throw new Error(`there is no node ${index}`);
        const { port } = dead;
        const extraArgs = argsOf(port, tls);
        servers[index] = await startRedis({ dir: dead.dir, port, extraArgs });
      },
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function quiet(client: Redis): Redis {
  client.on("error", () => undefined);
  return client;
}

/** Keys that move together. Between two batches, requests meet a slot that is in two places. */
const BATCH = 8;

/** Moves a slot with its keys, as `redis-cli --cluster reshard` does. `between` runs before each batch. */
export async function moveSlot(
  slot: number,
  { from, to }: { readonly from: Redis; readonly to: Redis },
  between: () => Promise<void>,
): Promise<void> {
  const [source, target] = await Promise.all([from.cluster("MYID"), to.cluster("MYID")]);
  expectAnswer(await to.cluster("SETSLOT", slot, "IMPORTING", String(source)));
  expectAnswer(await from.cluster("SETSLOT", slot, "MIGRATING", String(target)));
  const port = Number(to.options.port);
  for (;;) {
    await between();
    const keys = await from.cluster("GETKEYSINSLOT", slot, BATCH);
    if (keys.length === 0) break;
    const answer = await migrate(from, port, keys);
    // NOKEY: a key has expired. CLUSTERDOWN: a loaded node seemed to be unavailable, so the move is repeated.
    expectAnswer(answer, "NOKEY", "CLUSTERDOWN");
  }
  for (const node of [to, from]) {
    expectAnswer(await node.cluster("SETSLOT", slot, "NODE", String(target)));
  }
}

async function migrate(from: Redis, port: number, keys: readonly string[]): Promise<unknown> {
  try {
    return await from.call("MIGRATE", "127.0.0.1", port, "", 0, 5_000, "KEYS", ...keys);
  } catch (error) {
    if (error instanceof Error && error.message.includes("CLUSTERDOWN")) return "CLUSTERDOWN";
    throw error;
  }
}

function expectAnswer(answer: unknown, ...others: readonly string[]): void {
  if (!["OK", ...others].includes(String(answer)))
    throw new Error(`unexpected answer ${String(answer)}`);
}
