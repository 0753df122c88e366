import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { formatKey } from "@konverge/core";
import { startRedis } from "@konverge/apiserver";
import { openWorkflows, type Workflows } from "@konverge/workflow";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { ConfigMap } from "@konverge/kube/kinds";
import { runNames } from "../../libs/workflow/src/store/run-names.ts";
import { keyOfRun, queueOfWorkflow } from "../../libs/workflow/src/define/run-ref.ts";
import { installWidgets } from "../integration/kube/kube-servers.ts";
import type { FleetPlane } from "./fleet-plane.ts";
import { FORGOTTEN, retryJobsOfRuns, ROGUE_JOB } from "./rogue-queue.ts";
import type { TcpProxy } from "./tcp-proxy.ts";
import { bodiesOf, healedOf, counterOf, COUNTERS, NAMESPACE, TEST } from "./verb-programs.ts";
import { WAITED_GROUP } from "./verb-waits.ts";
import type { VerbWorkerConfig } from "./verb-worker.ts";
import { startWaitActor, type WaitActor } from "./wait-actor.ts";
import { Child } from "../support/child.ts";

const WORKER = fileURLToPath(new URL("verb-worker.ts", import.meta.url));
const LEASE_MS = 1_000;
const CONCURRENCY = 8;

interface VerbWorker {
  readonly child: Child;
  /** Its network to the API server. */
  readonly net: TcpProxy;
}

/** Processes that run workflows on one cluster, with their own Redis that survives kills. */
export interface VerbFleet extends AsyncDisposable {
  readonly plane: FleetPlane;
  readonly workflows: Workflows;
  /** Brings objects into the state that runs wait for. */
  readonly actor: WaitActor;
  /** Part of the names of all objects. */
  readonly test: string;
  readonly leaseMs: number;
  workerAt(slot: number): VerbWorker;
  /** Replaces a worker, possibly with newer code. */
  replace(slot: number, signal: "SIGKILL" | "SIGTERM", version?: number): Promise<void>;
  killRedis(): Promise<void>;
  restartRedis(): Promise<void>;
  addRogueJobs(runs: readonly string[]): Promise<void>;
  /** BullMQ's own retry of jobs in any state, as by a dashboard. */
  retryJobs(runs: readonly string[], random: () => number): Promise<void>;
  /** The rest of the index of waits. */
  findWaitLeftovers(): Promise<string[]>;
  /** Stops the failures of breaking steps. */
  heal(): Promise<void>;
  /** Number of started bodies. */
  countBodies(): Promise<number>;
}

export async function startVerbFleet(plane: FleetPlane, size: number): Promise<VerbFleet> {
  const test = `verbs-${process.pid}-${Date.now() % 1e6}`;
  const folder = await mkdtemp(join(tmpdir(), "konverge-verbs-redis-"));
  const store = { dir: folder, extraArgs: ["--appendonly", "yes"] };
  let server = await startRedis(store);
  const { url, port } = server;
  const prefix = "verbs";
  const workflows = openWorkflows({ redis: { url }, prefix, leaseMs: LEASE_MS });
  for (let counter = 0; counter < COUNTERS; counter += 1) {
    const { name } = counterOf(test, counter);
    await plane.admin.create(ConfigMap, {
      metadata: { namespace: NAMESPACE, name },
      data: { sum: "0", count: "0" },
    });
  }
  await installWidgets(plane.admin, WAITED_GROUP);
  const actor = startWaitActor(plane.admin, `${TEST}=${test}`);
  const workers: VerbWorker[] = [];
  const versions: number[] = [];
  let serial = 0;
  const startWorker = async (slot: number, version: number) => {
    const { proxy, kubeconfig } = await plane.connect();
    const config: VerbWorkerConfig = {
      url,
      prefix,
      test,
      leaseMs: LEASE_MS,
      workerId: `w${(serial += 1)}`,
      concurrency: CONCURRENCY,
      kubeconfig,
      version,
    };
    const child = new Child([WORKER, JSON.stringify(config)]);
    workers[slot] = { child, net: proxy };
    versions[slot] = version;
    await child.ready;
  };
  await Promise.all(Array.from({ length: size }, (_, slot) => startWorker(slot, 1)));

  const workerAt = (slot: number): VerbWorker => {
    const worker = workers[slot];
    if (worker === undefined) throw new Error(`worker ${slot} does not exist`);
    return worker;
  };
  const keysOf = (runs: readonly string[]) =>
    runs.map((id) => formatKey(keyOfRun({ workflow: "verbs", id }, "default")));
  const onQueue = async (act: (queue: Queue) => Promise<unknown>) => {
    const queue = new Queue(queueOfWorkflow("verbs"), {
      connection: { url },
      prefix: `${prefix}:{default}`,
      skipMetasUpdate: true,
    });
    try {
      await act(queue);
    } finally {
      await queue.close();
    }
  };
  return {
    plane,
    workflows,
    actor,
    test,
    leaseMs: LEASE_MS,
    workerAt,
    async replace(slot, signal, version = versions[slot] ?? 1) {
      await workerAt(slot).child.end(signal);
      await startWorker(slot, version);
    },
    killRedis: () => server.kill(),
    async restartRedis() {
      server = await startRedis({ ...store, port });
    },
    addRogueJobs: (runs) =>
      onQueue((queue) =>
        Promise.all(keysOf(runs).map((key) => queue.add(ROGUE_JOB, { key }, FORGOTTEN))),
      ),
    retryJobs: (runs, random) => onQueue((queue) => retryJobsOfRuns(queue, keysOf(runs), random)),
    async findWaitLeftovers() {
      const redis = new Redis(url);
      try {
        const { waitRoot, waitKinds, rechecks } = runNames(prefix, "default", "verbs");
        const found = await redis.keys(`${waitRoot}*`);
        for (const name of [waitKinds, rechecks]) if (await redis.exists(name)) found.push(name);
        return found;
      } finally {
        redis.disconnect();
      }
    },
    async heal() {
      const redis = new Redis(url);
      try {
        await redis.set(healedOf(prefix), "yes");
      } finally {
        redis.disconnect();
      }
    },
    async countBodies() {
      const redis = new Redis(url);
      try {
        return Number(await redis.get(bodiesOf(prefix)));
      } finally {
        redis.disconnect();
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map(({ child }) => child.kill()));
      await actor.stop();
      await workflows.close();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
