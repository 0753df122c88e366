import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalGate, type ApiObject, type ResourceType } from "@konverge/core";
import { defineConfig, startWorker } from "@konverge/worker";
import { type Controller, type Middleware, type Resource } from "@konverge/engine";
import {
  createKubeClient,
  ignoreNotFound,
  loadKubeCredentials,
  type KubeClient,
  type NewObject,
} from "@konverge/kube";
import { createApiServer, obtainRedis, type Fault } from "@konverge/apiserver";
import { resourcesOf } from "../config/crds-of.ts";
import { installCrds } from "../config/install-crds.ts";
import { readVersion } from "../process/version.ts";
import { readCalls, type ApiCall, type CallFilter } from "./api-calls.ts";
import { watchAttempts, type Attempt } from "./attempts.ts";
import { keepLog, type LogLine } from "./kept-log.ts";
import { waitUntil } from "./wait-until.ts";

export interface TestClusterOptions {
  /** An empty list starts no worker, for example if only `testWorkflow` needs the API server. */
  readonly controllers: readonly Controller[];
  /** Further resources whose CRDs are installed. */
  readonly resources?: readonly Resource[];
  /** Middleware of all controllers. */
  readonly use?: readonly Middleware[];
  /** Longest wait of `reconciled`, `gone` and `until` in ms. Default 10,000. */
  readonly deadlineMs?: number;
}

/** An API server, a Redis and a worker for one test. */
export interface TestCluster extends AsyncDisposable {
  /** A client for the test. `calls` does not contain its calls. */
  readonly kube: KubeClient;
  /** The kubeconfig as YAML, for other programs. */
  readonly kubeconfig: string;
  /** The log of the worker. */
  readonly log: readonly LogLine[];
  /** Applies an object by server-side apply. The default namespace is `default`. */
  apply<T extends ApiObject>(type: ResourceType<T>, object: NewObject<T>): Promise<T>;
  delete(object: ApiObject): Promise<void>;
  /**
   * Waits until each controller of the kind has succeeded with this or a newer version of the object, and no request is
   * pending. Returns the current object. @throws KonvergeError `wait_timeout` with the last error of the handler
   */
  reconciled<T extends ApiObject>(object: T): Promise<T>;
  /** Waits until the object is deleted, after its `cleanup`. @throws KonvergeError `wait_timeout` */
  gone(object: ApiObject): Promise<void>;
  /** Polls until the result is neither undefined nor false, and returns it. @throws KonvergeError `wait_timeout` */
  until<T>(
    what: string,
    ask: () => Promise<T | undefined | false> | T | undefined | false,
  ): Promise<T>;
  /** The calls of the worker since its start or the last `clearCalls`, without watches and Leases. */
  calls(filter?: CallFilter): readonly ApiCall[];
  clearCalls(): void;
  /** The attempts of all controllers at this object, oldest first. */
  attempts(object: ApiObject): Promise<readonly Attempt[]>;
  /** Injects a fault into the next calls of the worker; see `Fault`. Returns a function that removes it. */
  inject(fault: Fault): () => void;
  /** Stops the worker and both servers. */
  stop(): Promise<void>;
}

const WORKER = "konverge-worker/";
const NAMESPACE = "default";

/**
 * Starts the embedded API server with the CRDs of the controllers, a Redis (or uses `REDIS_URL`), and a worker. Takes about
 * half a second. `await using` stops everything.
 *
 * @example
 * await using k = await startTestCluster({ controllers: [greeter] });
 * const greeting = await k.apply(Greeting, { metadata: { name: "world" }, spec: { name: "World" } });
 * const { status } = await k.reconciled(greeting);
 * assert.equal(status?.text, "Hello, World!");
 * assert.equal(k.calls({ verb: "create", type: ConfigMap }).length, 1);
 *
 * @throws KonvergeError as `startWorker`; RedisUnavailable without a Redis
 */
export async function startTestCluster(options: TestClusterOptions): Promise<TestCluster> {
  const { controllers, resources = [], use = [], deadlineMs = 10_000 } = options;
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "konverge-test-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const auditLog = join(folder, "audit.jsonl");
  const server = await createApiServer({ auditLog });
  cleanup.defer(() => server.close());
  const kube = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
    userAgent: "konverge-test",
    fieldManager: "konverge-test",
  });
  cleanup.defer(() => kube.close());
  await installCrds(kube, [...resourcesOf(options), ...resources]);
  const redis = await obtainRedis({ log: () => undefined });
  cleanup.defer(() => redis.stop());
  const prefix = `test-${randomBytes(6).toString("hex")}`;
  cleanup.defer(() => redis.removeKeys(prefix));
  const attempts = watchAttempts({ controllers, redisUrl: redis.url, prefix });
  cleanup.defer(() => attempts.close());
  const log: LogLine[] = [];
  if (controllers.length > 0) {
    const worker = await startWorker({
      config: defineConfig({ controllers, use, settings: { prefix } }),
      redis: redis.url,
      kubeconfig: { text: server.kubeconfig },
      log: keepLog(log),
      version: readVersion(),
    });
    cleanup.defer(() => worker.stop({ graceMs: 1_000 }));
  }
  const calls = readCalls(auditLog, WORKER);
  calls.clear();

  const typeOf = ({ apiVersion, kind }: ApiObject) => kube.resolveType(apiVersion, kind);
  const find = async <T extends ApiObject>(object: T): Promise<T | undefined> => {
    const type = await typeOf(object);
    return (await kube.get(type, object.metadata).catch(ignoreNotFound)) as T | undefined;
  };
  const until: TestCluster["until"] = (what, ask) => waitUntil(what, ask, { deadlineMs });
  const ending = cleanup.move();
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= ending.disposeAsync());
  return {
    kube,
    kubeconfig: server.kubeconfig,
    log,
    apply<T extends ApiObject>(type: ResourceType<T>, object: NewObject<T>) {
      const metadata =
        type.scope === "Cluster" ? object.metadata : { namespace: NAMESPACE, ...object.metadata };
      return kube.apply<T>(type, { ...object, metadata }, { force: true });
    },
    async delete(object) {
      await kube.delete(await typeOf(object), object.metadata);
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
    until,
    calls: (filter) => calls.calls(filter),
    clearCalls: () => calls.clear(),
    attempts: (object) => attempts.of(object),
    inject: (fault) => server.inject({ userAgent: WORKER, ...fault }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
