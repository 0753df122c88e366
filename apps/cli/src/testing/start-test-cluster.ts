import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createLocalGate,
  defined,
  type ApiObject,
  type NamedLimits,
  type ResourceType,
} from "@konverge/core";
import { defineConfig, startWorker } from "@konverge/worker";
import {
  createDirectKube,
  type Controller,
  type Middleware,
  type Resource,
} from "@konverge/engine";
import {
  createKubeClient,
  ignoreNotFound,
  loadKubeCredentials,
  type AppliedFields,
  type KubeCalls,
  type KubeClient,
  type ObjectDraft,
} from "@konverge/kube";
import { obtainRedis, type Fault } from "@konverge/apiserver";
import {
  openWorkflows,
  parseRunId,
  type AnyWorkflow,
  type RunView,
  type Workflows,
} from "@konverge/workflow";
import { resourcesOf } from "../config/crds-of.ts";
import { installCrds } from "../config/install-crds.ts";
import { loadForeignKinds } from "../crd-types/foreign-kinds.ts";
import { readVersion } from "../process/version.ts";
import type { ApiCall, CallFilter } from "./api-calls.ts";
import { watchAttempts, type Attempt, type AttemptWatch } from "./attempts.ts";
import { keepLog, type LogLine } from "./kept-log.ts";
import { createObjectStatus } from "./object-status.ts";
import { openServer, type OpenedServer, type TestServer } from "./test-server.ts";
import { waitUntil } from "./wait-until.ts";

/** The options of {@link startTestCluster}. */
export interface TestClusterOptions {
  /** Without controllers and workflows no worker starts, for example if only `testWorkflow` needs the API server. */
  readonly controllers?: readonly Controller[];
  /** The workflows that the worker executes, for controllers that start runs. */
  readonly workflows?: readonly AnyWorkflow[];
  /** Default `embedded`. The CRDs and objects of a test stay on the server of a kubeconfig, so use a disposable one. */
  readonly server?: TestServer;
  /** Further resources whose CRDs are installed. */
  readonly resources?: readonly Resource[];
  /**
   * Files with CRDs of other projects, or folders with such files, which are installed. Relative paths start at the working
   * directory. Conversion webhooks are left out.
   */
  readonly crds?: readonly string[];
  /** Middleware of all controllers. */
  readonly use?: readonly Middleware[];
  /** The limits of handlers and steps, as in the configuration. */
  readonly limits?: NamedLimits;
  /** Longest wait of `reconciled`, `gone` and `until` in ms. Default 10,000. */
  readonly deadlineMs?: number;
}

/** An API server, a Redis and a worker for one test. */
export interface TestCluster extends AsyncDisposable {
  /** The calls of a handler, for the test; the default namespace is `default`. `calls` does not contain them. */
  readonly kube: KubeCalls<"handler">;
  /** The client below `kube`, for `testWorkflow` and for other calls. */
  readonly client: KubeClient;
  /** The kubeconfig as YAML, for other programs. */
  readonly kubeconfig: string;
  /** The log of the worker. */
  readonly log: readonly LogLine[];
  /**
   * Applies an object by server-side apply, and takes over fields of other managers. Takes a manifest or the draft of a handler's
   * `kube.apply`. The default namespace is `default`.
   */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: ObjectDraft<T> | AppliedFields<T>,
  ): Promise<T>;
  /** Requests the deletion of an object. */
  delete(object: ApiObject): Promise<void>;
  /**
   * Waits until each controller of the kind has succeeded with this or a newer version of the object, and no request is
   * pending. Returns the current object. @throws KonvergeError `wait_timeout` with the last error of the handler
   */
  reconciled<T extends ApiObject>(object: T): Promise<T>;
  /** Waits until the object is deleted, after its `cleanup`. @throws KonvergeError `wait_timeout` */
  gone(object: ApiObject): Promise<void>;
  /**
   * Writes the status of an object that is ready by the rules of kstatus, as its controller would: of Deployment, StatefulSet,
   * ReplicaSet, DaemonSet, Pod, PersistentVolumeClaim and Service, and a condition Ready of any other kind. Returns the object.
   */
  setReady<T extends ApiObject>(object: T): Promise<T>;
  /** Writes the status of a completed Job. Returns the Job. */
  completeJob<T extends ApiObject>(job: T): Promise<T>;
  /** Writes the status of a failed Job, with the message of its conditions. Returns the Job. */
  failJob<T extends ApiObject>(job: T, message: string): Promise<T>;
  /** Polls until the result is neither undefined nor false, and returns it. @throws KonvergeError `wait_timeout` */
  until<T>(
    what: string,
    ask: () => Promise<T | undefined | false> | T | undefined | false,
  ): Promise<T>;
  /** The current state of a workflow run, by the `id` that `startRun` returns; undefined if there is none. */
  run(id: string): Promise<RunView | undefined>;
  /** Sends a signal to a run. @throws KonvergeError `not_found`, `run_ended` */
  signal(id: string, name: string, payload?: unknown): Promise<void>;
  /** The calls of the worker since its start or the last `clearCalls`, without watches and Leases. */
  calls(filter?: CallFilter): readonly ApiCall[];
  /** Discards the calls so far. */
  clearCalls(): void;
  /** The attempts of all controllers at this object, oldest first. */
  attempts(object: ApiObject): Promise<readonly Attempt[]>;
  /** Injects a fault into the next calls of the worker; see `Fault`. Returns a function that removes it. */
  inject(fault: Fault): () => void;
  /** Stops the worker and both servers. */
  stop(): Promise<void>;
}

const NAMESPACE = "default";

/**
 * Starts an API server with the CRDs of the controllers, a Redis (or uses `REDIS_URL`), and a worker. Takes about half a
 * second with the embedded API server. `await using` stops everything.
 *
 * @example
 * await using k = await startTestCluster({ controllers: [greeter] });
 * const greeting = await k.apply(Greeting, { metadata: { name: "world" }, spec: { name: "World" } });
 * const { status } = await k.reconciled(greeting);
 * assert.equal(status?.text, "Hello, World!");
 * assert.equal(k.calls({ verb: "create", type: ConfigMap }).length, 1);
 *
 * @throws KonvergeError as `startWorker`; RedisUnavailable without a Redis; EnvtestUnavailable without a real API server
 */
export async function startTestCluster(options: TestClusterOptions): Promise<TestCluster> {
  await using cleanup = new AsyncDisposableStack();
  const { server, client, attempts, runs, log } = await startParts(options, cleanup);
  const { deadlineMs = 10_000 } = options;
  const typeOf = ({ apiVersion, kind }: ApiObject) => client.resolveType(apiVersion, kind);
  const find = async <T extends ApiObject>(object: T): Promise<T | undefined> => {
    const type = await typeOf(object);
    return (await client.get(type, object.metadata).catch(ignoreNotFound)) as T | undefined;
  };
  const until: TestCluster["until"] = (what, ask) => waitUntil(what, ask, { deadlineMs });
  const ending = cleanup.move();
  const kube = createDirectKube(client, NAMESPACE);
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= ending.disposeAsync());
  return {
    kube,
    client,
    kubeconfig: server.kubeconfig,
    log,
    apply: (type, object) => kube.apply(type, object, { force: true }),
    async delete(object) {
      await client.delete(await typeOf(object), object.metadata);
    },
    async reconciled(object) {
      const { kind, metadata } = object;
      await waitUntil(`${kind} ${metadata.name} to be reconciled`, () => attempts.settled(object), {
        deadlineMs,
        describe: () => attempts.describe(object),
      });
      return until(`${kind} ${metadata.name} to exist`, () => find(object));
    },
    async gone(object) {
      const { kind, metadata } = object;
      await until(`${kind} ${metadata.name} to be deleted`, async () => {
        return (await find(object))?.metadata.uid !== metadata.uid;
      });
    },
    ...createObjectStatus(client),
    until,
    run: (id) => runs.get(parseRunId(id)),
    signal: (id, name, payload) => runs.signal(parseRunId(id), name, defined({ payload })),
    calls: (filter) => server.calls.calls(filter),
    clearCalls: () => server.calls.clear(),
    attempts: (object) => attempts.of(object),
    inject: (fault) => server.inject(fault),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface Parts {
  readonly server: OpenedServer;
  readonly client: KubeClient;
  readonly attempts: AttemptWatch;
  readonly runs: Workflows;
  readonly log: readonly LogLine[];
}

/** Starts everything; `cleanup` stops it in reverse order. */
async function startParts(
  options: TestClusterOptions,
  cleanup: AsyncDisposableStack,
): Promise<Parts> {
  const { controllers = [], workflows = [], resources = [], use = [], limits = {} } = options;
  const folder = await mkdtemp(join(tmpdir(), "konverge-test-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const server = await openServer(options.server ?? "embedded", folder);
  cleanup.defer(() => server.close());
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
    userAgent: "konverge-test",
    fieldManager: "konverge-test",
  });
  cleanup.defer(() => client.close());
  const foreign = await loadForeignKinds(options.crds ?? []);
  await installCrds(client, [...resourcesOf({ controllers }), ...resources, ...foreign]);
  const redis = await obtainRedis({ log: () => undefined });
  cleanup.defer(() => redis.stop());
  const prefix = `test-${randomBytes(6).toString("hex")}`;
  cleanup.defer(() => redis.removeKeys(prefix));
  const attempts = watchAttempts({ controllers, redisUrl: redis.url, prefix });
  cleanup.defer(() => attempts.close());
  const runs = openWorkflows({ redis: { url: redis.url }, prefix });
  cleanup.defer(() => runs.close());
  const log: LogLine[] = [];
  if (controllers.length + workflows.length > 0) {
    const worker = await startWorker({
      config: defineConfig({ controllers, workflows, use, limits, settings: { prefix } }),
      redis: redis.url,
      kubeconfig: { text: server.kubeconfig },
      log: keepLog(log),
      version: readVersion(),
    });
    cleanup.defer(() => worker.stop({ graceMs: 1_000 }));
  }
  server.calls.clear();
  return { server, client, attempts, runs, log };
}
