import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startRedis } from "@konverge/apiserver";
import { ConfigMap } from "@konverge/kube/kinds";
import { openMutations, type Mutations } from "@konverge/mutations";
import { Child } from "../support/child.ts";
import type { FleetPlane } from "./fleet-plane.ts";
import type { MutationClientConfig } from "./mutation-client.ts";
import { CLIENTS, NAMESPACE, objectName, OBJECTS } from "./mutation-load.ts";
import type { MutationWorkerConfig } from "./mutation-worker.ts";
import type { TcpProxy } from "./tcp-proxy.ts";

const WORKER = fileURLToPath(new URL("mutation-worker.ts", import.meta.url));
const CLIENT = fileURLToPath(new URL("mutation-client.ts", import.meta.url));
const LEASE_MS = 1_000;
const SUBMITTERS = 2;

interface FleetWorker {
  readonly child: Child;
  /** Its network to the API server. */
  readonly net: TcpProxy;
}

/** Processes that submit and apply mutations on one cluster, with their own Redis that survives kills. */
export interface MutationFleet extends AsyncDisposable {
  readonly mutations: Mutations;
  readonly leaseMs: number;
  workerAt(slot: number): FleetWorker;
  replaceWorker(slot: number): Promise<void>;
  /** Kills a process of clients, and starts a successor. */
  replaceClients(slot: number): Promise<void>;
  readonly clients: number;
  /** Resolves when all clients have submitted all mutations. */
  submitted(): Promise<void>;
  killRedis(): Promise<void>;
  restartRedis(): Promise<void>;
  /** The value of each object. */
  sums(): Promise<number[]>;
}

interface FleetOptions {
  readonly workers: number;
  readonly perClient: number;
  readonly batch: number;
  readonly pauseMs: number;
}

export async function startMutationFleet(
  plane: FleetPlane,
  { workers: size, ...load }: FleetOptions,
): Promise<MutationFleet> {
  const test = `mutations-${process.pid}-${Date.now() % 1e6}`;
  const folder = await mkdtemp(join(tmpdir(), "konverge-mutations-redis-"));
  const store = { dir: folder, extraArgs: ["--appendonly", "yes"] };
  let server = await startRedis(store);
  const { url, port } = server;
  const place = { url, prefix: "mutations" };
  const mutations = openMutations({ redis: { url }, prefix: place.prefix, cluster: "default" });
  const objects = Array.from({ length: OBJECTS }, (_, object) => objectName(test, object));
  for (const name of objects) {
    await plane.admin.create(ConfigMap, { metadata: { namespace: NAMESPACE, name }, data: {} });
  }
  const workers: FleetWorker[] = [];
  const clients: Child[] = [];
  let serial = 0;
  const startWorker = async (slot: number) => {
    const { proxy, kubeconfig } = await plane.connect();
    const workerId = `w${(serial += 1)}`;
    const config: MutationWorkerConfig = { ...place, leaseMs: LEASE_MS, workerId, kubeconfig };
    const child = new Child([WORKER, JSON.stringify(config)]);
    workers[slot] = { child, net: proxy };
    await child.ready;
  };
  const startClients = async (slot: number) => {
    const own = Array.from({ length: CLIENTS }, (_, client) => client).filter(
      (client) => client % SUBMITTERS === slot,
    );
    const config: MutationClientConfig = { ...place, ...load, test, clients: own };
    clients[slot] = new Child([CLIENT, JSON.stringify(config)]);
    await clients[slot].ready;
  };
  await Promise.all([
    ...Array.from({ length: size }, (_, slot) => startWorker(slot)),
    ...Array.from({ length: SUBMITTERS }, (_, slot) => startClients(slot)),
  ]);
  const workerAt = (slot: number): FleetWorker => {
    const worker = workers[slot];
    if (worker === undefined) throw new Error(`worker ${slot} does not exist`);
    return worker;
  };
  return {
    mutations,
    leaseMs: LEASE_MS,
    clients: SUBMITTERS,
    workerAt,
    async replaceWorker(slot) {
      await workerAt(slot).child.kill();
      await startWorker(slot);
    },
    async replaceClients(slot) {
      await clients[slot]?.kill();
      await startClients(slot);
    },
    async submitted() {
      await Promise.all(
        clients.map(async (child) => {
          await child.exited;
          if (!child.output.includes("done")) throw new Error("a process of clients has failed");
        }),
      );
    },
    killRedis: () => server.kill(),
    async restartRedis() {
      server = await startRedis({ ...store, port });
    },
    async sums() {
      const found = await Promise.all(
        objects.map((name) => plane.admin.get(ConfigMap, { namespace: NAMESPACE, name })),
      );
      return found.map(({ data }) => Number(data?.["n"] ?? 0));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(
        [...workers.map(({ child }) => child), ...clients].map((one) => one.kill()),
      );
      await mutations.close();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
