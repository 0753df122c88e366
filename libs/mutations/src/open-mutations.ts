import { defined, ensureError, KonvergeError } from "@konverge/core";
import {
  createWorkQueue,
  joinWorkers,
  QueueProcess,
  type QueueWorker,
  type ScanOptions,
  type WorkQueue,
  type WorkQueueOptions,
} from "@konverge/queue";
import {
  closeRedis,
  DEFAULT_PREFIX,
  openConsumer,
  openProducer,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import type { Mutations, MutationWorkerSettings } from "./mutations.ts";
import { EndWaiters } from "./store/end-waiters.ts";
import type {
  MutationCounts,
  MutationPage,
  MutationQuery,
  MutationView,
  NewMutation,
  Submitted,
} from "./store/mutation-store.ts";
import {
  MUTATIONS,
  RedisMutationStore,
  type RedisMutationStoreOptions,
} from "./store/redis-mutation-store.ts";
import { startMutationWorker } from "./worker/mutation-worker.ts";

const MAX_SUBMITTED = 1_000;
const DEFAULT_RETENTION_MS = 86_400_000;
const DEFAULT_CONCURRENCY = 16;
const ID_FORM = /^[\w.:-]{1,128}$/;

export interface MutationsOptions extends Omit<WorkQueueOptions, "controller" | "process"> {
  /** How long a mutation is kept after its end, in ms. Default 1 d. */
  readonly retentionMs?: number;
}

/** Opens the mutations of one cluster. Connects in the background; calls wait up to 1 s for Redis. */
export function openMutations(options: MutationsOptions): Mutations {
  return new RedisMutations(options);
}

class RedisMutations implements Mutations {
  readonly #redis: RedisClient;
  readonly #store: RedisMutationStore;
  readonly #queue: WorkQueue;
  readonly #waiters: EndWaiters;
  readonly #onError: (error: Error) => void;
  readonly #target: RedisTarget;
  readonly #place: Omit<RedisMutationStoreOptions, "call">;
  readonly #workers = new Set<QueueWorker>();

  constructor({ retentionMs = DEFAULT_RETENTION_MS, ...options }: MutationsOptions) {
    const { redis: target, cluster, prefix = DEFAULT_PREFIX, onError = () => undefined } = options;
    this.#onError = onError;
    const redis = openProducer(target);
    redis.on("error", onError);
    this.#redis = redis;
    this.#target = target;
    this.#place = { prefix, cluster, retentionMs };
    const call: RedisMutationStoreOptions["call"] = (run) => withRedis(redis, () => run(redis));
    this.#store = new RedisMutationStore({ call, ...this.#place });
    this.#queue = createWorkQueue({
      ...options,
      controller: MUTATIONS,
      process: new QueueProcess(target),
    });
    this.#waiters = new EndWaiters({
      redis: target,
      channel: this.#store.names.settled,
      read: async (id) => (await this.#store.get([id]))[0],
      onError,
    });
  }

  async submit(mutations: readonly NewMutation[]): Promise<readonly Submitted[]> {
    if (mutations.length > MAX_SUBMITTED) {
      const detail = `must have at most ${MAX_SUBMITTED} mutations (got ${mutations.length})`;
      throw new KonvergeError("invalid_request", `mutations ${detail}`);
    }
    for (const [at, { id }] of mutations.entries()) checkId(id, at);
    const submitted = await this.#store.submit(mutations);
    await this.#request(mutations.filter((_, at) => isStored(submitted[at])));
    return submitted;
  }

  /** A request that fails is repeated by the sweep of the workers: the mutation is stored. */
  async #request(mutations: readonly NewMutation[]): Promise<void> {
    const byObject = new Map(
      mutations.map((mutation) => [JSON.stringify(mutation.object), mutation]),
    );
    const items = [...byObject.values()].map(({ object, class: of = "interactive", by }) => ({
      key: this.#store.keyOf(object),
      trigger: { kind: "signal" as const, reason: "mutation", ...defined({ by }) },
      options: { class: of },
    }));
    if (items.length === 0) return;
    try {
      const results = await this.#queue.requestMany(items);
      for (const result of results) if (result.kind === "refused") this.#onError(result.error);
    } catch (error) {
      this.#onError(ensureError(error));
    }
  }

  async get(ids: readonly string[]): Promise<readonly (MutationView | undefined)[]> {
    return await this.#store.get(ids);
  }

  async list(query: MutationQuery = {}, options: ScanOptions = {}): Promise<MutationPage> {
    return await this.#store.list(query, options);
  }

  async cancel(id: string, by?: string): ReturnType<Mutations["cancel"]> {
    return await this.#store.cancel(id, by);
  }

  async settled(id: string, signal: AbortSignal): Promise<MutationView> {
    return await this.#waiters.wait(id, signal);
  }

  async counts(): Promise<MutationCounts> {
    return await this.#store.counts();
  }

  async openKinds(): ReturnType<Mutations["openKinds"]> {
    return await this.#store.openKinds();
  }

  work({ concurrency = DEFAULT_CONCURRENCY, ...settings }: MutationWorkerSettings): QueueWorker {
    const { redis } = openConsumer(this.#target, { gathersTurns: true });
    redis.on("error", this.#onError);
    // Waits for Redis without a limit: a write that was made must be recorded.
    const call: RedisMutationStoreOptions["call"] = (run) => run(redis);
    const started = startMutationWorker({
      ...settings,
      concurrency,
      store: new RedisMutationStore({ call, ...this.#place }),
      queue: this.#queue,
      place: this.#place,
      onError: this.#onError,
    });
    const worker = joinWorkers([started], async () => {
      this.#workers.delete(worker);
      await closeRedis(redis);
    });
    this.#workers.add(worker);
    return worker;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await Promise.all([this.#waiters.close(), this.#queue.close()]);
    await closeRedis(this.#redis);
  }
}

function isStored(submitted: Submitted | undefined): boolean {
  return submitted !== undefined && !("refused" in submitted);
}

function checkId(id: string, at: number): void {
  if (ID_FORM.test(id)) return;
  const detail = 'must have 1 to 128 letters, digits, ".", "_", ":" or "-"';
  throw new KonvergeError("invalid_request", `id of mutation ${at} ${detail} (got "${id}")`, {
    issues: [{ pointer: `/${at}/id`, detail }],
  });
}
