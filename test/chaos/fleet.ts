import { defined } from "@konverge/core";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isAlreadyExists, isServed } from "@konverge/kube";
import { ConfigMap, CustomResourceDefinition, Namespace } from "@konverge/kube/kinds";
import { createWorkQueue, type WorkQueue } from "@konverge/queue";
import { startRedis } from "@konverge/apiserver";
import { Redis } from "ioredis";
import {
  CONTROLLERS,
  COUNTER_NAMES,
  Counter,
  hotObject,
  LEASE_MS,
  MODES,
  Plain,
  PLAIN_NAMES,
  type ClockOrder,
  type ControllerName,
  type FleetWord,
  type FleetWorkerConfig,
} from "./fleet-contract.ts";
import { nowUs } from "./fleet-journal.ts";
import type { FleetPlane } from "./fleet-plane.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import type { PatchName } from "./teeth/patches.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";

const WORKER = fileURLToPath(new URL("fleet-worker.ts", import.meta.url));
const CLOCK = new URL("fleet-clock.ts", import.meta.url).href;
const PATCHER = new URL("teeth/load-patched.ts", import.meta.url).href;

/** Longest time until a worker starts: a probe whose worker died blocks the breaker until its ticket expires. */
const READY_MS = 120_000;

/** A worker process and its networks. */
export interface FleetWorker {
  readonly id: string;
  readonly child: Child;
  readonly redisNet: TcpProxy;
  readonly apiNet: TcpProxy;
  /** Time of its exit, on the clock of the journals. */
  diedAtUs: number | undefined;
  setClock(offsetMs: number): void;
  /** Resolves after its exit. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

export interface FleetOptions {
  readonly plane: FleetPlane;
  readonly namespace: string;
  readonly patch?: PatchName;
  readonly plainMs?: readonly [number, number];
  readonly failing?: number;
}

/** Workers, their Redis, and their API server. */
export interface Fleet extends AsyncDisposable {
  readonly plane: FleetPlane;
  readonly namespace: string;
  readonly prefix: string;
  /** The folder of the journals. */
  readonly journals: string;
  /** The running workers. */
  readonly workers: ReadonlySet<FleetWorker>;
  /** All workers, including exited ones. */
  readonly past: readonly FleetWorker[];
  readonly redisUrl: string;
  queue(controller: ControllerName): WorkQueue;
  startWorker(options?: { readonly clockOffsetMs?: number }): Promise<FleetWorker>;
  killRedis(): Promise<void>;
  /** Restarts with all acknowledged writes, since each was synced to its file. */
  restartRedis(): Promise<void>;
  /** A connection until the end of the fleet. */
  redis(): Redis;
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { plane, namespace, patch, plainMs = [20, 300], failing = 0.1 } = options;
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "konverge-fleet-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const store = { dir: folder, extraArgs: ["--appendfsync", "always"] };
  let server = await startRedis(store);
  cleanup.defer(() => server.stop());
  const { url: redisUrl, port } = server;
  const prefix = `chaos-${namespace}`;
  await prepareObjects(plane, namespace);
  cleanup.defer(() => removeObjects(plane, namespace));

  const workers = new Set<FleetWorker>();
  const past: FleetWorker[] = [];
  let serial = 0;
  cleanup.defer(async () => {
    await Promise.all([...workers].map((worker) => worker.end("SIGKILL")));
    await Promise.all(past.map(({ redisNet }) => redisNet[Symbol.asyncDispose]()));
  });
  const startOnce = async (clockOffsetMs: number): Promise<FleetWorker | undefined> => {
    const id = `worker-${++serial}`;
    const redisNet = await startTcpProxy(port);
    const { proxy: apiNet, kubeconfig } = await plane.connect();
    const config: FleetWorkerConfig = {
      redisUrl: `redis://127.0.0.1:${redisNet.port}`,
      kubeconfig,
      prefix,
      namespace,
      workerId: id,
      journal: join(folder, `${id}.jsonl`),
      plainMs,
      failing,
    };
    const patching = patch === undefined ? [] : ["--import", PATCHER];
    const child = new Child(["--import", CLOCK, ...patching, WORKER, JSON.stringify(config)], {
      ipc: true,
      env: {
        FLEET_CLOCK_OFFSET_MS: String(clockOffsetMs),
        ...defined({ FLEET_PATCH: patch }),
      },
    });
    const worker: FleetWorker = {
      id,
      child,
      redisNet,
      apiNet,
      diedAtUs: undefined,
      setClock(offsetMs) {
        // A dead worker has no clock.
        if (child.process.connected)
          child.process.send({ kind: "clock", offsetMs } satisfies ClockOrder);
      },
      async end(signal) {
        if (worker.diedAtUs !== undefined) return;
        child.signal(signal);
        // A stopped process cannot receive the request to end.
        if (signal === "SIGTERM") child.signal("SIGCONT");
        await child.exited;
      },
    };
    child.process.once("exit", () => {
      worker.diedAtUs = nowUs();
      workers.delete(worker);
    });
    workers.add(worker);
    past.push(worker);
    const said = await child.message().catch(() => undefined);
    if (said === undefined) return undefined;
    const { patched } = said as FleetWord;
    if (patched !== (patch ?? "")) throw new Error(`${id} was loaded without "${patched}"`);
    return worker;
  };
  /** Acts as a supervisor: restarts workers that exit because a dependency is unavailable. */
  const startWorker: Fleet["startWorker"] = async ({ clockOffsetMs = 0 } = {}) => {
    const deadlineMs = performance.now() + READY_MS;
    for (let starts = 1; ; starts += 1) {
      const worker = await startOnce(clockOffsetMs);
      if (worker !== undefined) return worker;
      if (performance.now() > deadlineMs)
        throw new Error(`no worker was ready in ${starts} starts`);
    }
  };

  const queues = new Map<ControllerName, WorkQueue>();
  for (const controller of CONTROLLERS) {
    const queue = createWorkQueue({
      redis: { url: redisUrl },
      controller,
      cluster: "default",
      prefix,
      leaseMs: LEASE_MS,
    });
    queues.set(controller, queue);
    cleanup.defer(() => queue.close());
  }
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
  // It recovers by itself when Redis is back.
  redis.on("error", () => undefined);
  cleanup.defer(() => redis.disconnect());
  const rest = cleanup.move();
  return {
    plane,
    namespace,
    prefix,
    journals: folder,
    workers,
    past,
    redisUrl,
    queue(controller) {
      const queue = queues.get(controller);
      if (queue === undefined) throw new Error(`no queue of ${controller}`);
      return queue;
    },
    startWorker,
    killRedis: () => server.kill(),
    async restartRedis() {
      server = await startRedis({ ...store, port });
    },
    redis: () => redis,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

async function prepareObjects({ admin }: FleetPlane, namespace: string): Promise<void> {
  await admin.create(Namespace, { metadata: { name: namespace } });
  for (const resource of [Counter, Plain]) {
    await admin.create(CustomResourceDefinition, resource.crd()).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
    await until(`${resource.kind} is served`, () => isServed(admin, resource));
  }
  for (const mode of MODES) {
    await admin.create(ConfigMap, {
      metadata: { namespace, name: hotObject(mode) },
      data: { count: "0" },
    });
  }
  for (const name of COUNTER_NAMES)
    await admin.create(Counter, { metadata: { namespace, name }, spec: {} });
  for (const name of PLAIN_NAMES)
    await admin.create(Plain, { metadata: { namespace, name }, spec: {} });
}

/** So that they do not affect the next fleet on this server. */
async function removeObjects({ admin }: FleetPlane, namespace: string): Promise<void> {
  for (const name of COUNTER_NAMES) await admin.delete(Counter, { namespace, name });
  for (const name of PLAIN_NAMES) await admin.delete(Plain, { namespace, name });
}
