import { defined, KonvergeError, type ObjectKey } from "@konverge/core";
import {
  createControllerRegistry,
  createHistoryReader,
  createWorkQueue,
  openRawQueue,
  type AnnouncedController,
  type AnnouncedWorker,
  type AnnouncedWorkflow,
  type ControllerRegistry,
  type HistoryReader,
  type RawQueue,
  type WorkQueue,
  type WorkQueueOptions,
} from "@konverge/queue";
import { closeRedis, openProducer } from "@konverge/redis";
import { openWorkflows, queueOfWorkflow, type Workflows } from "@konverge/workflow";
import { createAnswerStore, type AnswerStore } from "../kept/answer-store.ts";
import { createAuditLog, type AuditLog } from "../kept/audit-log.ts";
import { oncePerTurn } from "./once-per-turn.ts";
import { createTokenStore, type TokenStore } from "../access/token-store.ts";

const ANNOUNCED_MS = 1_000;

interface FoundQueue {
  readonly queue: WorkQueue;
  readonly announced: AnnouncedController;
}

/** The queues of all controllers that workers have announced, opened as they are asked for, and what the API keeps itself. */
export interface QueueAccess {
  readonly tokens: TokenStore;
  readonly audit: AuditLog;
  readonly answers: AnswerStore;
  /** @throws KonvergeError `unknown_controller` or `redis_unavailable` */
  find(cluster: string, controller: string): Promise<FoundQueue>;
  /**
   * Sends a request without a look at the queue first: while it is on its way, Redis is asked how the queue is split now, and
   * when that has changed it is sent again, to where its key is at home now. @throws as `find`, and what `send` throws
   */
  request<T>(
    cluster: string,
    controller: string,
    send: (found: FoundQueue) => Promise<T>,
  ): Promise<T>;
  controllers(cluster: string): Promise<AnnouncedController[]>;
  workflows(cluster: string): Promise<AnnouncedWorkflow[]>;
  /** The wake-ups of a workflow that was announced. @throws KonvergeError `unknown_controller`, `redis_unavailable` */
  workflowQueue(cluster: string, workflow: string): Promise<WorkQueue>;
  workers(cluster: string): Promise<AnnouncedWorker[]>;
  /** Every cluster that has controllers. */
  clusters(): Promise<string[]>;
  /** The runs of a cluster, and the version in which a new one of each workflow starts. @throws as `history` */
  runs(cluster: string): Promise<{
    readonly workflows: Workflows;
    readonly announced: ReadonlyMap<string, number>;
  }>;
  /** What explains the attempts of a cluster. @throws KonvergeError `not_found` for one that no worker has announced */
  history(cluster: string): Promise<HistoryReader>;
  /** One per shard, each opened once. */
  rawQueues(
    controller: Pick<AnnouncedController, "cluster" | "name">,
  ): Promise<readonly RawQueue[]>;
  close(): Promise<void>;
}

export interface QueueAccessOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly onError: (error: Error) => void;
  /** Keys of a queue that may wait before requests for more are refused. Default: no bound. */
  readonly maxQueueLength?: number;
  /** What answers kept by Idempotency-Key may take of Redis. Default 64 MiB. */
  readonly answerBudgetBytes?: number;
  /** Looks on at every request. */
  readonly observe?: NonNullable<WorkQueueOptions["observe"]>;
}

export function openQueueAccess(options: QueueAccessOptions): QueueAccess {
  const { redisUrl, prefix, onError, observe, maxQueueLength = Infinity } = options;
  const redis = { url: redisUrl };
  const registries = new Map<string, ControllerRegistry>();
  const queues = new Map<string, WorkQueue>();
  const histories = new Map<string, HistoryReader>();
  const raw = new Map<string, readonly RawQueue[]>();
  const runs = new Map<string, Workflows>();
  const own = openProducer(redis);
  own.on("error", onError);
  const audit = createAuditLog(own, prefix, onError);

  const clusters = createControllerRegistry({ redis, prefix, cluster: "default", onError });
  const announcedClusters = new Set<string>();
  /** How the queues of a cluster were split when somebody looked last, and a look at that. */
  const splits = new Map<string, number>();
  const looks = new Map<string, () => Promise<number>>();
  const announcements = new Map<
    string,
    { readonly announced: AnnouncedController; readonly untilMs: number }
  >();

  /** Names come from outside, and each that is known has connections of its own: of others there must be none. */
  const isKnown = async (cluster: string): Promise<boolean> => {
    if (announcedClusters.has(cluster)) return true;
    for (const name of await clusters.listClusters()) announcedClusters.add(name);
    return announcedClusters.has(cluster);
  };
  const registry = async (cluster: string): Promise<ControllerRegistry | undefined> => {
    if (!(await isKnown(cluster))) return undefined;
    const known =
      registries.get(cluster) ?? createControllerRegistry({ redis, prefix, cluster, onError });
    registries.set(cluster, known);
    return known;
  };
  /** What a controller is for does not change from one request to the next. */
  const announcementOf = async (known: ControllerRegistry, cluster: string, controller: string) => {
    const id = JSON.stringify([cluster, controller]);
    const recent = announcements.get(id);
    if (recent !== undefined && performance.now() < recent.untilMs) return recent.announced;
    const announced = await known.get(controller);
    announcements.set(id, { announced, untilMs: performance.now() + ANNOUNCED_MS });
    return announced;
  };
  const unknown = (code: "unknown_controller" | "not_found", cluster: string): KonvergeError =>
    new KonvergeError(
      code,
      `no worker has announced a cluster "${cluster}" yet; start one: konverge worker --config <file>`,
    );
  const announcing = async (cluster: string): Promise<ControllerRegistry> => {
    const known = await registry(cluster);
    if (known === undefined) throw unknown("unknown_controller", cluster);
    return known;
  };
  /** Asked each time: a request in a shard that is none any more would never run. */
  const shardsOf = async (known: ControllerRegistry, cluster: string): Promise<number> => {
    const look = looks.get(cluster) ?? oncePerTurn(() => known.shards());
    looks.set(cluster, look);
    return await look();
  };
  const queueOf = (cluster: string, controller: string, shards: number): WorkQueue => {
    const id = `${cluster}/${controller}/${shards}`;
    const queue =
      queues.get(id) ??
      createWorkQueue({
        redis,
        prefix,
        cluster,
        controller,
        shards,
        onError,
        maxQueueLength,
        ...defined({ observe }),
      });
    queues.set(id, queue);
    return queue;
  };
  const find = async (cluster: string, controller: string): Promise<FoundQueue> => {
    const known = await announcing(cluster);
    const [announced, shards] = await Promise.all([
      announcementOf(known, cluster, controller),
      shardsOf(known, cluster),
    ]);
    splits.set(cluster, shards);
    return { queue: queueOf(cluster, controller, shards), announced };
  };
  return {
    tokens: createTokenStore(own, prefix),
    audit,
    answers: createAnswerStore(own, prefix, options.answerBudgetBytes),
    find,
    async request(cluster, controller, send) {
      const known = await announcing(cluster);
      const announced = await announcementOf(known, cluster, controller);
      const shards = splits.get(cluster);
      if (shards !== undefined) {
        const [sent, now] = await Promise.allSettled([
          send({ queue: queueOf(cluster, controller, shards), announced }),
          shardsOf(known, cluster),
        ]);
        if (now.status === "rejected") throw now.reason;
        if (now.value === shards) {
          if (sent.status === "rejected") throw sent.reason;
          return sent.value;
        }
      }
      return await send(await find(cluster, controller));
    },
    async workflowQueue(cluster, workflow) {
      const known = await announcing(cluster);
      return queueOf(cluster, queueOfWorkflow(workflow), await shardsOf(known, cluster));
    },
    controllers: async (cluster) => (await (await registry(cluster))?.list()) ?? [],
    workflows: async (cluster) => (await (await registry(cluster))?.listWorkflows()) ?? [],
    workers: async (cluster) => (await (await registry(cluster))?.listWorkers()) ?? [],
    clusters: () => clusters.listClusters(),
    async runs(cluster) {
      const known = await registry(cluster);
      if (known === undefined) throw unknown("not_found", cluster);
      const [announced, shards] = await Promise.all([known.listWorkflows(), known.shards()]);
      const id = `${cluster}/${shards}`;
      const workflows = runs.get(id) ?? openWorkflows({ redis, prefix, cluster, shards, onError });
      runs.set(id, workflows);
      return {
        workflows,
        announced: new Map(announced.map(({ name, version }) => [name, version])),
      };
    },
    async history(cluster) {
      if (!(await isKnown(cluster))) throw unknown("not_found", cluster);
      const known =
        histories.get(cluster) ?? createHistoryReader({ redis, prefix, cluster, onError });
      histories.set(cluster, known);
      return known;
    },
    async rawQueues({ cluster, name: controller }) {
      const count = (await (await registry(cluster))?.shards()) ?? 1;
      const common = { redis, prefix, cluster, controller, onError };
      const id = `${cluster}/${controller}/${count}`;
      const opened =
        raw.get(id) ??
        (count === 1
          ? [openRawQueue(common)]
          : Array.from({ length: count }, (_, shard) => openRawQueue({ ...common, shard })));
      raw.set(id, opened);
      return opened;
    },
    async close() {
      await audit.close();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await Promise.all([...registries.values()].map((known) => known.close()));
      await Promise.all([...runs.values()].map((workflows) => workflows.close()));
      await Promise.all([...histories.values()].map((history) => history.close()));
      await Promise.all([...raw.values()].flat().map((queue) => queue.close()));
      await Promise.all([clusters.close(), closeRedis(own)]);
    },
  };
}

/** The key of an object, by what the controller's workers said about its kind. @throws KonvergeError `invalid_request` */
export function keyFor(
  { name: controller, cluster, resource, group, scope, kind }: AnnouncedController,
  target: { readonly namespace?: string | undefined; readonly name: string },
): ObjectKey {
  const { namespace, name } = target;
  const wrong = (detail: string) =>
    new KonvergeError("invalid_request", `namespace ${detail}`, {
      issues: [{ pointer: "/namespace", detail }],
    });
  if (scope === "Namespaced" && namespace === undefined) {
    throw wrong(`is required, because ${kind} is namespaced`);
  }
  if (scope === "Cluster" && namespace !== undefined) {
    throw wrong(`is not allowed, because ${kind} is cluster-scoped`);
  }
  return {
    controller,
    cluster,
    resource,
    group,
    name,
    ...defined({ namespace }),
  };
}
