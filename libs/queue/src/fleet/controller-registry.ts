import { defined, ensureError, isKonvergeError, KonvergeError } from "@konverge/core";
import { raiseFormatScript } from "../scripts/raise-format.ts";
import { claimBinding, formatKey, readShards } from "./cluster-binding.ts";
import { FORMATS, UNSTAMPED, type Formats } from "./format.ts";
import {
  clusterRoot,
  DEFAULT_PREFIX,
  closeRedis,
  openProducer,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import type {
  AnnouncedCache,
  AnnouncedController,
  AnnouncedLoad,
  AnnouncedWorker,
  AnnouncedWorkflow,
} from "./announced.ts";
import { driftKey } from "../drift/drift-store.ts";
import { clustersKey, controllersKey, workflowsKey } from "../keys/queue-names.ts";
import { HEARTBEAT_MS, keepAlive, listLiveWorkers, WORKER_TTL_MS } from "./live-workers.ts";

/** Ends the heartbeat and removes the worker from the list. */
export type StopHeartbeat = () => Promise<void>;

/**
 * The announcements of a cluster's workers. Processes without the user's configuration, such as the HTTP API, read the
 * controllers and workflows from it.
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
   * By name, in the highest version of the live workers, else in the version announced last. During a rollout, runs of the
   * older version would find fewer and fewer workers.
   */
  listWorkflows(): Promise<AnnouncedWorkflow[]>;
  /** @throws KonvergeError `unknown_controller`, which lists the known controllers. */
  get(name: string): Promise<AnnouncedController>;
  /**
   * Keeps `worker` on the list of live workers, and the announcements of this registry stored, until stopped. A crashed
   * worker is removed after 15 s.
   */
  heartbeat(
    worker: AnnouncedWorker,
    options?: {
      /** Receives the other live workers with each heartbeat. */
      readonly onOthers?: (others: readonly AnnouncedWorker[]) => void;
      /** Called before each heartbeat. */
      readonly caches?: () => readonly AnnouncedCache[];
      readonly load?: () => AnnouncedLoad | undefined;
    },
  ): StopHeartbeat;
  listWorkers(): Promise<AnnouncedWorker[]>;
  /** The number of shards that this cluster's queues are bound to; 1 before the first worker. */
  shards(): Promise<number>;
  /** Every cluster of this prefix with announced controllers or workflows, by name. */
  listClusters(): Promise<string[]>;
  close(): Promise<void>;
}

export interface ControllerRegistryOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  readonly prefix?: string;
  /** The binding of a worker. Each heartbeat repeats it, in case Redis lost its data. */
  readonly binding?: { readonly uid: string; readonly shards: number };
  /** Receives connection errors and failed heartbeats. Default: errors are ignored. */
  readonly onError?: (error: Error) => void;
  /** The formats of data that the worker can use. Default: those of this version. */
  readonly formats?: Formats;
  /** Time without older workers before the format is raised, in ms. Default 24 h, in which a rollback is possible. */
  readonly formatHoldMs?: number;
  /** Called with each heartbeat while the data has a format that the worker cannot use. It must stop. */
  readonly onIncompatible?: (error: KonvergeError) => void;
}

const FORMAT_HOLD_MS = 86_400_000;

export function createControllerRegistry(options: ControllerRegistryOptions): ControllerRegistry {
  return new RedisRegistry(options);
}

class RedisRegistry implements ControllerRegistry {
  readonly #redis: RedisClient;
  readonly #cluster: string;
  readonly #prefix: string;
  readonly #binding: ControllerRegistryOptions["binding"];
  readonly #onError: (error: Error) => void;
  readonly #onIncompatible: (error: KonvergeError) => void;
  readonly #formats: Formats;
  readonly #formatHoldMs: number;
  readonly #controllersKey: string;
  readonly #workflowsKey: string;
  readonly #workersKey: string;
  readonly #controllers = new Map<string, AnnouncedController>();
  readonly #workflows = new Map<string, string>();
  readonly #heartbeats = new Set<StopHeartbeat>();

  constructor(options: ControllerRegistryOptions) {
    const { cluster, prefix = DEFAULT_PREFIX, onError = () => undefined } = options;
    this.#cluster = cluster;
    this.#prefix = prefix;
    this.#binding = options.binding;
    this.#onError = onError;
    this.#onIncompatible = options.onIncompatible ?? onError;
    this.#formats = options.formats ?? FORMATS;
    this.#formatHoldMs = options.formatHoldMs ?? FORMAT_HOLD_MS;
    this.#controllersKey = controllersKey(prefix, cluster);
    this.#workflowsKey = workflowsKey(prefix, cluster);
    this.#workersKey = `${clusterRoot(prefix, cluster)}/workers`;
    this.#redis = openProducer(options.redis);
    this.#redis.on("error", onError);
  }

  async announce(
    controllers: readonly AnnouncedController[],
    workflows: readonly AnnouncedWorkflow[] = [],
  ): Promise<void> {
    const cluster = this.#cluster;
    const foreign = controllers.find((controller) => controller.cluster !== cluster);
    if (foreign !== undefined) {
      throw new KonvergeError(
        "invalid_config",
        `controller "${foreign.name}" belongs to cluster "${foreign.cluster}", not to cluster "${cluster}" of this registry`,
      );
    }
    for (const controller of controllers) this.#controllers.set(controller.name, controller);
    for (const workflow of workflows) this.#workflows.set(workflow.name, textOf(workflow));
    await withRedis(this.#redis, () => this.#store());
    // The drift of an earlier version that only planned.
    const place = { prefix: this.#prefix, cluster };
    const old = controllers.filter(({ observes }) => observes !== true);
    if (old.length === 0) return;
    const keys = old.map(({ name }) => driftKey(place, name));
    await withRedis(this.#redis, () => this.#redis.del(...keys));
  }

  async list(): Promise<AnnouncedController[]> {
    const stored = await withRedis(this.#redis, () => this.#redis.hvals(this.#controllersKey));
    return stored.map((text) => JSON.parse(text) as AnnouncedController).toSorted(byName);
  }

  async get(name: string): Promise<AnnouncedController> {
    const stored = await withRedis(this.#redis, () => this.#redis.hget(this.#controllersKey, name));
    if (stored !== null) return JSON.parse(stored) as AnnouncedController;
    const known = (await this.list()).map((controller) => controller.name).join(", ") || "none yet";
    throw new KonvergeError(
      "unknown_controller",
      `cluster "${this.#cluster}" has no controller "${name}"; known: ${known}`,
    );
  }

  heartbeat(
    worker: AnnouncedWorker,
    { onOthers, caches, load }: Parameters<ControllerRegistry["heartbeat"]>[1] = {},
  ): StopHeartbeat {
    const redis = this.#redis;
    let last: Promise<void> = Promise.resolve();
    const beat = () => {
      // Repeats the announcements: a Redis that lost its data would miss them until the next start of a worker.
      last = withRedis(redis, async () => {
        const current = {
          ...worker,
          format: this.#formats.newest,
          ...defined({ caches: caches?.(), load: load?.() }),
        };
        const others = await keepAlive(redis, this.#workersKey, current);
        onOthers?.(others);
        await this.#store();
      }).catch((error: unknown) => {
        const isFormat = isKonvergeError(error) && error.code === "format_mismatch";
        if (isFormat) this.#onIncompatible(error);
        else this.#onError(ensureError(error));
      });
    };
    beat();
    const timer = setInterval(beat, HEARTBEAT_MS);
    const stop = async () => {
      clearInterval(timer);
      this.#heartbeats.delete(stop);
      await last;
      await this.#remove(worker.workerId);
    };
    this.#heartbeats.add(stop);
    return stop;
  }

  async listWorkers(): Promise<AnnouncedWorker[]> {
    return await withRedis(this.#redis, () => listLiveWorkers(this.#redis, this.#workersKey));
  }

  async listWorkflows(): Promise<AnnouncedWorkflow[]> {
    const [stored, workers] = await Promise.all([
      withRedis(this.#redis, () => this.#redis.hgetall(this.#workflowsKey)),
      this.listWorkers(),
    ]);
    return Object.entries(stored)
      .map(([name, last]) => {
        const live = workers.filter(({ workflows }) => workflows?.[name] !== undefined);
        if (live.length === 0) return parseWorkflow(name, last);
        const version = Math.max(...live.map(({ workflows }) => workflows?.[name] ?? 0));
        // During a rollout, values for workers with the codec are encoded.
        return { name, version, ...defined({ codec: live.find(({ codec }) => codec)?.codec }) };
      })
      .toSorted(byName);
  }

  async shards(): Promise<number> {
    return await withRedis(this.#redis, () => readShards(this.#redis, this.#prefix, this.#cluster));
  }

  async listClusters(): Promise<string[]> {
    const key = clustersKey(this.#prefix);
    const clusters = await withRedis(this.#redis, () => this.#redis.smembers(key));
    return clusters.toSorted((left, right) => left.localeCompare(right));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#heartbeats].map((stop) => stop()));
    await closeRedis(this.#redis);
  }

  async #store(): Promise<void> {
    const redis = this.#redis;
    const [controllers, workflows] = [this.#controllers, this.#workflows];
    const fields = [...controllers].map(([field, rest]) => ({
      field,
      value: JSON.stringify(rest),
    }));
    if (this.#binding !== undefined) {
      // In one script: a process that finds a controller must also find the number of shards of its queue.
      const [prefix, cluster, formats] = [this.#prefix, this.#cluster, this.#formats];
      const format = await claimBinding(
        redis,
        { prefix, cluster, formats, ...this.#binding },
        fields,
      );
      if (format < formats.newest) await this.#raiseFormat();
    } else if (controllers.size > 0) {
      await redis.hset(
        this.#controllersKey,
        ...fields.flatMap(({ field, value }) => [field, value]),
      );
    }
    if (workflows.size > 0) await redis.hset(this.#workflowsKey, workflows);
    if (controllers.size + workflows.size === 0) return;
    // A separate call: on a Redis Cluster the list of clusters is in another slot.
    await redis.sadd(clustersKey(this.#prefix), this.#cluster);
  }

  /** The worker itself is in the list, with the newest format. */
  async #raiseFormat(): Promise<void> {
    await runScript(this.#redis, raiseFormatScript, {
      keys: { formatKey: formatKey(this.#prefix, this.#cluster), workers: this.#workersKey },
      args: {
        newest: this.#formats.newest,
        old: UNSTAMPED,
        ttlMs: WORKER_TTL_MS,
        holdMs: this.#formatHoldMs,
      },
    });
  }

  async #remove(workerId: string): Promise<void> {
    try {
      await withRedis(this.#redis, () => this.#redis.hdel(this.#workersKey, workerId));
    } catch (cause) {
      const { message } = ensureError(cause);
      const remains = `worker ${workerId} remains listed for up to ${WORKER_TTL_MS / 1_000} s`;
      this.#onError(new KonvergeError("redis_unavailable", `${remains}: ${message}`, { cause }));
    }
  }
}

/** The version, then the name of the codec, if there is one. */
function textOf({ version, codec }: AnnouncedWorkflow): string {
  return codec === undefined ? String(version) : `${version} ${codec}`;
}

function parseWorkflow(name: string, text: string): AnnouncedWorkflow {
  const [version, codec] = text.split(" ");
  return { name, version: Number(version), ...defined({ codec }) };
}

function byName(left: { readonly name: string }, right: { readonly name: string }): number {
  return left.name.localeCompare(right.name);
}
