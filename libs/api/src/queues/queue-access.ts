import {
  codecName,
  defined,
  findNameIssue,
  formatKey,
  KonvergeError,
  type ObjectKey,
  type PayloadCodec,
} from "@konverge/core";
import {
  askForObject,
  createApprovalStore,
  createDriftStore,
  createRecordingStore,
  createGaugeStore,
  createHistoryReader,
  createRestoreControl,
  createTokensFence,
  listServedClusters,
  createWorkQueue,
  openRawQueue,
  openNotificationStore,
  openSourceStore,
  readServerState,
  type AnnouncedController,
  type ApprovalStore,
  type DriftStore,
  type AnnouncedInbound,
  type AnnouncedWorker,
  type AnnouncedWorkflow,
  type GaugeStore,
  type HistoryReader,
  type NotificationStore,
  type ObjectRead,
  type PlanState,
  type RecordingStore,
  type WantedPlan,
  readPlan,
  readPlansOf,
  requestPlan,
  type RawQueue,
  type RestoreControl,
  type ServerState,
  type SourceStore,
  type WorkerClusters,
  type WorkQueue,
  type WorkQueueOptions,
} from "@konverge/queue";
import { openMutations, type Mutations, type OpenKind } from "@konverge/mutations";
import { closeRedis, openProducer, type RedisClient, type RedisTarget } from "@konverge/redis";
import {
  openWorkflows,
  queueOfWorkflow,
  type Workflows,
  type WorkflowsOptions,
} from "@konverge/workflow";
import { createAnswerStore, type AnswerStore } from "../kept/answer-store.ts";
import { createAuditLog, type AuditLog, type AuditNote } from "../audit/audit-log.ts";
import type { AuditKeys } from "../audit/audit-hash.ts";
import { createUserSessions, type UserSessions } from "../access/user-sessions.ts";
import { createSessionStore, type SessionStore } from "../access/session-store.ts";
import { atMostEvery } from "../access/at-most-every.ts";
import { createTokenStore, type TokenStore } from "../access/token-store.ts";
import { Announcements } from "./announcements.ts";
import { keyed, type Keyed } from "./keyed.ts";

/** Time for which the announced sources of a cluster are cached, in ms. */
const SOURCES_MS = 1_000;

interface FoundQueue {
  readonly queue: WorkQueue;
  readonly announced: AnnouncedController;
}

/** The queues of all announced controllers, opened on first use, and the stores of the API. */
export interface QueueAccess {
  /** The prefix of the installation. */
  readonly installation: string;
  readonly tokens: TokenStore;
  /** The sessions of browsers; `salt` is the configured token. */
  sessions(salt: string): SessionStore;
  /** The sessions of the users of an OIDC provider. */
  readonly userSessions: UserSessions;
  readonly audit: AuditLog;
  /** What a restore of Redis holds. */
  readonly restore: RestoreControl;
  readonly answers: AnswerStore;
  /** Name of the codec of this process. */
  readonly codec: string | undefined;
  /** @throws KonvergeError `unknown_controller` or `redis_unavailable` */
  find(cluster: string, controller: string): Promise<FoundQueue>;
  /**
   * Sends a request and reads the number of shards in parallel. If the number has changed, the request is sent again to
   * the new shard of its key. @throws as `find` and `send`
   */
  request<T>(
    cluster: string,
    controller: string,
    send: (found: FoundQueue) => Promise<T>,
  ): Promise<T>;
  controllers(cluster: string): Promise<AnnouncedController[]>;
  workflows(cluster: string): Promise<AnnouncedWorkflow[]>;
  /** The queue of an announced workflow. @throws KonvergeError `unknown_controller`, `redis_unavailable` */
  workflowQueue(cluster: string, workflow: string): Promise<WorkQueue>;
  workers(cluster: string): Promise<AnnouncedWorker[]>;
  /** All clusters with controllers. */
  clusters(): Promise<string[]>;
  /** The memory and replicas of the Redis server. */
  readServer(): Promise<ServerState>;
  /** The clusters that each live worker serves. */
  served(): Promise<WorkerClusters[]>;
  /** The runs of a cluster, and the version of new runs by workflow. @throws as `history` */
  runs(cluster: string): Promise<{
    readonly workflows: Workflows;
    readonly announced: ReadonlyMap<string, number>;
    /** The name of the codec, by workflow. */
    readonly codecs: ReadonlyMap<string, string>;
  }>;
  /** The mutations of a cluster, and the kinds that they may change. @throws as `history` */
  mutations(cluster: string): Promise<{
    readonly mutations: Mutations;
    readonly kinds: readonly OpenKind[];
  }>;
  /** The sources of the controllers of a cluster. @throws as `history` */
  sources(cluster: string): Promise<{
    readonly store: SourceStore;
    readonly controllers: readonly AnnouncedController[];
    /** Finds an inbound source. */
    readonly find: (name: string) => AnnouncedInbound | undefined;
  }>;
  /** The notifications of a cluster. @throws as `history` */
  notifications(cluster: string): Promise<Pick<NotificationStore, "list" | "waiting">>;
  /** The attempt history of a cluster. @throws KonvergeError `not_found` for a cluster that no worker has announced */
  history(cluster: string): Promise<HistoryReader>;
  /** Asks the workers for an object; the answer is JSON. Undefined if none answers. @throws KonvergeError `redis_unavailable` */
  readObject(cluster: string, wanted: ObjectRead, signal: AbortSignal): Promise<string | undefined>;
  /** The plans of objects; a worker runs them. */
  readonly plans: PlanAccess;
  /** The plans of a cluster that wait for users. */
  approvals(cluster: string): ApprovalStore;
  /** The changes that observing controllers would make. */
  drifts(cluster: string): DriftStore;
  /** The recordings of a cluster's attempts. */
  recordings(cluster: string): RecordingStore;
  /** The measured values of a cluster per minute. */
  gauges(cluster: string): GaugeStore;
  /** One queue per shard. */
  rawQueues(
    controller: Pick<AnnouncedController, "cluster" | "name">,
  ): Promise<readonly RawQueue[]>;
  close(): Promise<void>;
}

/** @throws KonvergeError `redis_unavailable` */
interface PlanAccess {
  request(cluster: string, wanted: WantedPlan): Promise<void>;
  read(cluster: string, id: string): Promise<PlanState | undefined>;
  /** The records of an object's plans, newest first. */
  list(cluster: string, key: string): Promise<string[]>;
}

export interface QueueAccessOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly onError: (error: Error) => void;
  /** Maximum waiting keys per controller. Default: unlimited. */
  readonly maxQueueLength?: number;
  /** How long a run is kept after its end, in ms. Default 7 days. The same as for workers. */
  readonly runRetentionMs?: number;
  /** Loss of writes after which tokens are held, in ms. Default 1 minute. The same as for workers. */
  readonly restoreToleranceMs?: number;
  /** Codec of the workflows. Default: none; values of workflows with a codec stay encoded. */
  readonly codec?: PayloadCodec | undefined;
  /** Maximum Redis memory for stored responses. Default 64 MiB. */
  readonly answerBudgetBytes?: number;
  /** Receives each entry of the audit log before it is written. */
  readonly onAuditEntry?: ((note: AuditNote) => void) | undefined;
  /** Receives the number of entries that could not be written before `close`. */
  readonly onAuditLost?: ((entries: number) => void) | undefined;
  /** Keys of the hash chains of the audit log. Default: none. */
  readonly auditKeys?: AuditKeys | undefined;
  /** Observes every request. */
  readonly observe?: NonNullable<WorkQueueOptions["observe"]>;
  /** Traces requests for executions of runs. */
  readonly tracing?: NonNullable<WorkflowsOptions["tracing"]>;
}

export function openQueueAccess(options: QueueAccessOptions): QueueAccess {
  return new RedisQueueAccess(options);
}

class RedisQueueAccess implements QueueAccess {
  readonly installation: string;
  readonly tokens: TokenStore;
  readonly userSessions: UserSessions;
  readonly audit: AuditLog;
  readonly restore: RestoreControl;
  readonly answers: AnswerStore;
  readonly codec: string | undefined;
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #announcements: Announcements;
  readonly #queues: Keyed<[cluster: string, controller: string, shards: number], WorkQueue>;
  readonly #workflows: Keyed<[cluster: string, shards: number], Workflows>;
  readonly #mutations: Keyed<[cluster: string, shards: number], Mutations>;
  readonly #sources: Keyed<[cluster: string], SourceStore>;
  readonly #notifications: Keyed<[cluster: string], NotificationStore>;
  readonly #sourced: Keyed<[cluster: string], () => Promise<AnnouncedController[]>>;
  readonly #histories: Keyed<[cluster: string], HistoryReader>;
  readonly #rawQueues: Keyed<
    [cluster: string, controller: string, shards: number],
    readonly RawQueue[]
  >;
  /** The last known number of shards, by cluster. */
  readonly #shards = new Map<string, number>();

  constructor(options: QueueAccessOptions) {
    const { redis, prefix, onError, observe, maxQueueLength = Infinity } = options;
    const { runRetentionMs: retentionMs, codec, answerBudgetBytes: budgetBytes } = options;
    const { tracing } = options;
    this.codec = codec && codecName(codec);
    const common = { redis, prefix, onError };
    const bounds = { maxQueueLength, ...defined({ observe }) };
    this.#prefix = prefix;
    this.installation = prefix;
    this.#redis = openProducer(redis);
    this.#redis.on("error", onError);
    this.audit = createAuditLog(this.#redis, prefix, {
      onError,
      onEntry: options.onAuditEntry,
      onLost: options.onAuditLost,
      keys: options.auditKeys,
    });
    this.restore = createRestoreControl(this.#redis, prefix);
    const isHeld = createTokensFence(this.#redis, prefix, options.restoreToleranceMs);
    this.tokens = createTokenStore(this.#redis, prefix, { isHeld });
    this.userSessions = createUserSessions(this.#redis, prefix, { isHeld });
    this.answers = createAnswerStore(this.#redis, prefix, { budgetBytes, codec });
    this.#announcements = new Announcements(common);
    this.#queues = keyed(
      (cluster, controller, shards) =>
        createWorkQueue({
          ...common,
          ...bounds,
          cluster,
          controller,
          shards,
          noteUser: (key, user) => this.#noteUser(key, user),
        }),
      (queue) => queue.close(),
    );
    this.#workflows = keyed(
      (cluster, shards) =>
        openWorkflows({ ...common, ...defined({ retentionMs, codec, tracing }), cluster, shards }),
      (workflows) => workflows.close(),
    );
    this.#mutations = keyed(
      (cluster, shards) => openMutations({ ...common, ...bounds, cluster, shards }),
      (mutations) => mutations.close(),
    );
    this.#sources = keyed(
      (cluster) => openSourceStore({ ...common, cluster }),
      (store) => store.close(),
    );
    this.#notifications = keyed(
      (cluster) => openNotificationStore({ ...common, cluster }),
      (store) => store.close(),
    );
    this.#sourced = keyed((cluster) =>
      atMostEvery(SOURCES_MS, async () =>
        (await this.controllers(cluster)).filter(({ sources }) => sources !== undefined),
      ),
    );
    this.#histories = keyed(
      (cluster) => createHistoryReader({ ...common, cluster }),
      (history) => history.close(),
    );
    this.#rawQueues = keyed(
      (cluster, controller, shards) =>
        shards === 1
          ? [openRawQueue({ ...common, cluster, controller })]
          : Array.from({ length: shards }, (_, shard) =>
              openRawQueue({ ...common, cluster, controller, shard }),
            ),
      (queues) => Promise.all(queues.map((queue) => queue.close())),
    );
  }

  sessions(salt: string): SessionStore {
    return createSessionStore(this.#redis, this.#prefix, salt);
  }

  async find(cluster: string, controller: string): Promise<FoundQueue> {
    const [announced, shards] = await Promise.all([
      this.#announcements.controller(cluster, controller),
      this.#announcements.shards(cluster),
    ]);
    this.#shards.set(cluster, shards);
    return { queue: this.#queues.of(cluster, controller, shards), announced };
  }

  /** Users may not approve the plans that they have requested. */
  async #noteUser(key: ObjectKey, user: string): Promise<void> {
    const { cluster, controller } = key;
    const { approval } = await this.#announcements.controller(cluster, controller);
    if (approval === true) await this.approvals(cluster).noteRequester(formatKey(key), user);
  }

  async request<T>(
    cluster: string,
    controller: string,
    send: (found: FoundQueue) => Promise<T>,
  ): Promise<T> {
    const announced = await this.#announcements.controller(cluster, controller);
    const shards = this.#shards.get(cluster);
    if (shards !== undefined) {
      const [sent, now] = await Promise.allSettled([
        send({ queue: this.#queues.of(cluster, controller, shards), announced }),
        this.#announcements.shards(cluster),
      ]);
      if (now.status === "rejected") {
        // Its data may have another format by now: the next request is not sent before that is known.
        this.#shards.delete(cluster);
        throw now.reason;
      }
      if (now.value === shards) {
        if (sent.status === "rejected") throw sent.reason;
        return sent.value;
      }
    }
    return await send(await this.find(cluster, controller));
  }

  async controllers(cluster: string): Promise<AnnouncedController[]> {
    return (await (await this.#announcements.registry(cluster))?.list()) ?? [];
  }

  async workflows(cluster: string): Promise<AnnouncedWorkflow[]> {
    return (await (await this.#announcements.registry(cluster))?.listWorkflows()) ?? [];
  }

  async workers(cluster: string): Promise<AnnouncedWorker[]> {
    return (await (await this.#announcements.registry(cluster))?.listWorkers()) ?? [];
  }

  clusters(): Promise<string[]> {
    return this.#announcements.listClusters();
  }

  served(): Promise<WorkerClusters[]> {
    return listServedClusters(this.#redis, this.#prefix);
  }

  readServer(): Promise<ServerState> {
    return readServerState(this.#redis, this.#prefix);
  }

  async workflowQueue(cluster: string, workflow: string): Promise<WorkQueue> {
    const shards = await this.#announcements.shards(cluster);
    return this.#queues.of(cluster, queueOfWorkflow(workflow), shards);
  }

  async runs(cluster: string) {
    const registry = await this.#announcements.demand(cluster, "not_found");
    const [announced, shards] = await Promise.all([registry.listWorkflows(), registry.shards()]);
    return {
      workflows: this.#workflows.of(cluster, shards),
      announced: new Map(announced.map(({ name, version }) => [name, version])),
      codecs: new Map(announced.flatMap(({ name, codec }) => (codec ? [[name, codec]] : []))),
    };
  }

  async mutations(cluster: string) {
    const registry = await this.#announcements.demand(cluster, "not_found");
    const mutations = this.#mutations.of(cluster, await registry.shards());
    return { mutations, kinds: await mutations.openKinds() };
  }

  async sources(cluster: string) {
    await this.#announcements.demand(cluster, "not_found");
    const controllers = await this.#sourced.of(cluster)();
    const stores = this.#sources;
    return {
      // Opens a connection.
      get store() {
        return stores.of(cluster);
      },
      controllers,
      find: (name: string) =>
        controllers
          .flatMap(({ sources = [] }) => sources)
          .find((source) => source.kind === "inbound" && source.name === name)?.inbound,
    };
  }

  async notifications(cluster: string): Promise<NotificationStore> {
    await this.#announcements.demand(cluster, "not_found");
    return this.#notifications.of(cluster);
  }

  async history(cluster: string): Promise<HistoryReader> {
    await this.#announcements.demand(cluster, "not_found");
    return this.#histories.of(cluster);
  }

  readObject(
    cluster: string,
    wanted: ObjectRead,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    return askForObject(this.#redis, { prefix: this.#prefix, cluster, wanted }, { signal });
  }

  get plans(): PlanAccess {
    const redis = this.#redis;
    const prefix = this.#prefix;
    return {
      request: (cluster, wanted) => requestPlan(redis, { prefix, cluster }, wanted),
      read: (cluster, id) => readPlan(redis, { prefix, cluster }, id),
      list: (cluster, key) => readPlansOf(redis, { prefix, cluster }, key),
    };
  }

  approvals(cluster: string): ApprovalStore {
    return createApprovalStore(this.#redis, { prefix: this.#prefix, cluster });
  }

  drifts(cluster: string): DriftStore {
    return createDriftStore(this.#redis, { prefix: this.#prefix, cluster });
  }

  recordings(cluster: string): RecordingStore {
    return createRecordingStore(this.#redis, { prefix: this.#prefix, cluster });
  }

  gauges(cluster: string): GaugeStore {
    return createGaugeStore(this.#redis, this.#prefix, cluster);
  }

  async rawQueues({
    cluster,
    name,
  }: Pick<AnnouncedController, "cluster" | "name">): Promise<readonly RawQueue[]> {
    const shards = (await (await this.#announcements.registry(cluster))?.shards()) ?? 1;
    return this.#rawQueues.of(cluster, name, shards);
  }

  async close(): Promise<void> {
    await this.audit.close();
    await this.#queues.close();
    await this.#announcements.close();
    await this.#workflows.close();
    await this.#mutations.close();
    await this.#sources.close();
    await this.#notifications.close();
    await this.#histories.close();
    await this.#rawQueues.close();
    await closeRedis(this.#redis);
  }
}

/** Returns the key of an object, according to the announced kind. @throws KonvergeError `invalid_request` */
export function keyFor(
  { name: controller, cluster, resource, group, scope, kind }: AnnouncedController,
  target: { readonly namespace?: string | undefined; readonly name: string },
): ObjectKey {
  const { namespace, name } = target;
  const issue = findNameIssue({ kind, scope }, target);
  if (issue !== undefined) {
    const { field, detail } = issue;
    throw new KonvergeError("invalid_request", `${field} ${detail}`, {
      issues: [{ pointer: `/${field}`, detail }],
    });
  }
  return { controller, cluster, resource, group, name, ...defined({ namespace }) };
}
