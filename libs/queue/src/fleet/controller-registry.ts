import { ensureError, KonvergeError, type WorkerRole } from "@konverge/core";
import { claimBinding, readShards } from "./cluster-binding.ts";
import {
  clusterRoot,
  DEFAULT_PREFIX,
  closeRedis,
  openProducer,
  readClockUs,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { clustersKey, controllersKey, workflowsKey } from "../keys/queue-names.ts";

/** A heartbeat is missed three times before a worker counts as gone. */
const HEARTBEAT_MS = 5_000;
const WORKER_TTL_MS: number = 3 * HEARTBEAT_MS;

/** What other processes must know about a controller to make requests for it. */
export interface AnnouncedController {
  readonly name: string;
  readonly cluster: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural. */
  readonly resource: string;
  readonly scope: "Namespaced" | "Cluster";
}

/** What other processes must know about a workflow to start runs of it. */
export interface AnnouncedWorkflow {
  readonly name: string;
  /** Of the code. */
  readonly version: number;
}

/** Which version of a controller a worker runs. */
export interface AnnouncedDefinition {
  /** What it reconciles, for people. */
  readonly kind: string;
  /** Differs between versions. */
  readonly digest: string;
}

export interface AnnouncedWorker {
  readonly workerId: string;
  readonly controllers: readonly string[];
  /** By the name of the controller. */
  readonly definitions: Readonly<Record<string, AnnouncedDefinition>>;
  /** Versions of the workflows that it runs, by name; missing from workers of older versions. */
  readonly workflows?: Readonly<Record<string, number>>;
  /** What it does: make requests, run handlers, or both. */
  readonly role: WorkerRole;
  /** Version of Konverge. */
  readonly version: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly host: string;
}

/** Ends the heartbeat and takes the worker off the list. */
export type StopHeartbeat = () => Promise<void>;

/**
 * What the workers of a cluster tell about themselves, so that a process without the user's configuration, such as the
 * HTTP API, knows the controllers.
 */
export interface ControllerRegistry {
  /** @throws KonvergeError `redis_unavailable` */
  announce(
    controllers: readonly AnnouncedController[],
    workflows?: readonly AnnouncedWorkflow[],
  ): Promise<void>;
  /** By name. */
  list(): Promise<AnnouncedController[]>;
  /**
   * By name, in the highest version that a live worker has, else in the one announced last: while versions take turns, a run
   * of the older one could be finished by fewer and fewer workers.
   */
  listWorkflows(): Promise<AnnouncedWorkflow[]>;
  /** @throws KonvergeError `unknown_controller`, naming those that are known. */
  get(name: string): Promise<AnnouncedController>;
  /**
   * Keeps `worker` on the list of live workers, and what was announced here, until stopped; one that dies falls off after
   * 15 s.
   */
  heartbeat(
    worker: AnnouncedWorker,
    options?: {
      /** Told with each beat who else lives. */
      readonly onOthers?: (others: readonly AnnouncedWorker[]) => void;
    },
  ): StopHeartbeat;
  listWorkers(): Promise<AnnouncedWorker[]>;
  /** The number of shards that the workers have bound this cluster's queues to; 1 before the first. */
  shards(): Promise<number>;
  /** Every cluster of this prefix for which controllers or workflows were ever announced, by name. */
  listClusters(): Promise<string[]>;
  close(): Promise<void>;
}

export interface ControllerRegistryOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  readonly prefix?: string;
  /** Of a worker: told again with each heartbeat, to a Redis that lost it. */
  readonly binding?: { readonly uid: string; readonly shards: number };
  /** Told about lost connections and heartbeats that did not get through. Default: nobody. */
  readonly onError?: (error: Error) => void;
}

export function createControllerRegistry(options: ControllerRegistryOptions): ControllerRegistry {
  const { cluster, prefix = DEFAULT_PREFIX, onError = () => undefined } = options;
  const redis = openProducer(options.redis);
  redis.on("error", onError);
  const announcedWorkflowsKey = workflowsKey(prefix, cluster);
  const announcedKey = controllersKey(prefix, cluster);
  const workersKey = `${clusterRoot(prefix, cluster)}/workers`;
  const stops = new Set<StopHeartbeat>();

  const announced = new Map<string, AnnouncedController>();
  const announcedWorkflows = new Map<string, number>();

  const store = async () => {
    const fields = [...announced].map(([field, rest]) => ({ field, value: JSON.stringify(rest) }));
    if (options.binding !== undefined) {
      // Together: whoever finds a controller must find how its queue is split.
      await claimBinding(redis, { prefix, cluster, ...options.binding }, fields);
    } else if (announced.size > 0) {
      await redis.hset(announcedKey, ...fields.flatMap(({ field, value }) => [field, value]));
    }
    if (announcedWorkflows.size > 0) await redis.hset(announcedWorkflowsKey, announcedWorkflows);
    if (announced.size + announcedWorkflows.size === 0) return;
    // By itself: the list of clusters lies in another slot of a Redis Cluster.
    await redis.sadd(clustersKey(prefix), cluster);
  };
  const list = async () => {
    const stored = await withRedis(redis, () => redis.hvals(announcedKey));
    return stored
      .map((text) => JSON.parse(text) as AnnouncedController)
      .toSorted((left, right) => left.name.localeCompare(right.name));
  };

  const listWorkers = async () => {
    const [stored, timeUs] = await withRedis(redis, () =>
      Promise.all([redis.hvals(workersKey), readClockUs(redis, workersKey)]),
    );
    return livingAt(timeUs / 1_000, stored);
  };

  return {
    async announce(controllers, workflows = []) {
      const foreign = controllers.find((controller) => controller.cluster !== cluster);
      if (foreign !== undefined) {
        throw new KonvergeError(
          "invalid_config",
          `controller "${foreign.name}" is of cluster "${foreign.cluster}", this registry of "${cluster}"`,
        );
      }
      for (const controller of controllers) announced.set(controller.name, controller);
      for (const { name, version } of workflows) announcedWorkflows.set(name, version);
      await withRedis(redis, store);
    },
    list,
    async get(name) {
      const stored = await withRedis(redis, () => redis.hget(announcedKey, name));
      if (stored !== null) return JSON.parse(stored) as AnnouncedController;
      const known = (await list()).map((controller) => controller.name).join(", ") || "none yet";
      throw new KonvergeError(
        "unknown_controller",
        `cluster "${cluster}" has no controller "${name}"; known: ${known}`,
      );
    },
    heartbeat(worker, { onOthers } = {}) {
      let last: Promise<void> = Promise.resolve();
      const beat = () => {
        // The controllers again: a Redis that lost its data would not know them until the next start of a worker.
        last = withRedis(redis, async () => {
          const others = await keepAlive(redis, workersKey, worker);
          onOthers?.(others);
          await store();
        }).catch(onError);
      };
      beat();
      const timer = setInterval(beat, HEARTBEAT_MS);
      const stop = async () => {
        clearInterval(timer);
        stops.delete(stop);
        await last;
        await withRedis(redis, () => redis.hdel(workersKey, worker.workerId)).catch(
          (cause: unknown) => {
            const { message } = ensureError(cause);
            const stays = `${worker.workerId} stays on the list of workers for up to ${WORKER_TTL_MS / 1_000} s`;
            onError(new KonvergeError("redis_unavailable", `${stays}: ${message}`, { cause }));
          },
        );
      };
      stops.add(stop);
      return stop;
    },
    listWorkers,
    async listWorkflows() {
      const [stored, workers] = await Promise.all([
        withRedis(redis, () => redis.hgetall(announcedWorkflowsKey)),
        listWorkers(),
      ]);
      return Object.entries(stored)
        .map(([name, last]) => {
          const live = workers.flatMap(({ workflows }) => workflows?.[name] ?? []);
          return { name, version: live.length > 0 ? Math.max(...live) : Number(last) };
        })
        .toSorted((left, right) => left.name.localeCompare(right.name));
    },
    shards: () => withRedis(redis, () => readShards(redis, prefix, cluster)),
    async listClusters() {
      const clusters = await withRedis(redis, () => redis.smembers(clustersKey(prefix)));
      return clusters.toSorted((left, right) => left.localeCompare(right));
    },
    async close() {
      await Promise.all([...stops].map((stop) => stop()));
      await closeRedis(redis);
    },
  };
}

interface StoredWorker extends AnnouncedWorker {
  /** By Redis's clock. */
  readonly seenAtMs: number;
}

function livingAt(nowMs: number, stored: readonly string[]): AnnouncedWorker[] {
  return stored
    .map((text) => JSON.parse(text) as StoredWorker)
    .filter(({ seenAtMs }) => seenAtMs + WORKER_TTL_MS > nowMs)
    .map(withoutTime);
}

function withoutTime(stored: StoredWorker): AnnouncedWorker {
  const { seenAtMs: _, ...worker } = stored;
  return worker;
}

/**
 * Fields of a hash have no expiry of their own before Redis 7.4, so the time is stored, and dead ones are swept here. Answers
 * the others that live.
 */
async function keepAlive(
  redis: RedisClient,
  key: string,
  worker: AnnouncedWorker,
): Promise<AnnouncedWorker[]> {
  const [stored, timeUs] = await Promise.all([redis.hgetall(key), readClockUs(redis, key)]);
  const nowMs = Math.floor(timeUs / 1_000);
  const dead = Object.entries(stored)
    .filter(([, text]) => (JSON.parse(text) as StoredWorker).seenAtMs + WORKER_TTL_MS * 2 < nowMs)
    .map(([id]) => id);
  if (dead.length > 0) await redis.hdel(key, ...dead);
  await redis.hset(key, worker.workerId, JSON.stringify({ ...worker, seenAtMs: nowMs }));
  await redis.pexpire(key, WORKER_TTL_MS * 4);
  return livingAt(nowMs, Object.values(stored)).filter(
    ({ workerId }) => workerId !== worker.workerId,
  );
}
