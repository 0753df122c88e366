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
  /** None: no worker is started, such as when the API server is that of a `testWorkflow`. */
  readonly controllers: readonly Controller[];
  /** Resources that the controllers do not name, so that their CRDs are there too. */
  readonly resources?: readonly Resource[];
  /** Middleware of all controllers, as in the configuration. */
  readonly use?: readonly Middleware[];
  /** Longest wait of `reconciled`, `gone` and `until`, default 10,000 ms. */
  readonly deadlineMs?: number;
}

/** An API server, a Redis and a worker of a test's own. */
export interface TestCluster extends AsyncDisposable {
  /** Talks to the API server as a person would; its calls are not among `calls`. */
  readonly kube: KubeClient;
  /** Kubeconfig's YAML, for a program of the test's own. */
  readonly kubeconfig: string;
  /** What the worker logged. */
  readonly log: readonly LogLine[];
  /** Server-side apply, in namespace `default` when none is named. */
  apply<T extends ApiObject>(type: ResourceType<T>, object: NewObject<T>): Promise<T>;
  delete(object: ApiObject): Promise<void>;
  /**
   * Waits until each controller of the object's kind has succeeded with the object as it was applied last, or with a newer
   * one, and nothing more is requested. Returns the object as it is then. @throws KonvergeError `wait_timeout` at the deadline,
   * with the last error of the handler
   */
  reconciled<T extends ApiObject>(object: T): Promise<T>;
  /** Waits until the object is gone, and with it what `cleanup` had to do. @throws KonvergeError `wait_timeout` */
  gone(object: ApiObject): Promise<void>;
  /** Asks until the answer is neither undefined nor false, and returns it. @throws KonvergeError `wait_timeout` */
  until<T>(
    what: string,
    ask: () => Promise<T | undefined | false> | T | undefined | false,
  ): Promise<T>;
  /** What the API server has answered the worker since its start or the last `clearCalls`, watches and leases left out. */
  calls(filter?: CallFilter): readonly ApiCall[];
  clearCalls(): void;
  /** Attempts of all controllers at this object, oldest first, as the dashboard shows them. */
  attempts(object: ApiObject): Promise<readonly Attempt[]>;
  /** What happens to the worker's next calls; see `Fault`. Returns what takes it back. */
  inject(fault: Fault): () => void;
  /** Ends the worker and both servers. */
  stop(): Promise<void>;
}

const WORKER = "konverge-worker/";
const NAMESPACE = "default";

/**
 * Starts the embedded API server with the CRDs of the controllers, a Redis (`REDIS_URL`, else one of its own), and a worker.
 * Takes about half a second; `await using` ends it all.
 *
 * @example
 * await using k = await startTestCluster({ controllers: [greeter] });
 * const greeting = await k.apply(Greeting, { metadata: { name: "world" }, spec: { name: "World" } });
 * const { status } = await k.reconciled(greeting);
 * assert.equal(status?.text, "Hello, World!");
 * assert.equal(k.calls({ verb: "create", type: ConfigMap }).length, 1);
 *
 * @throws KonvergeError as `startWorker` does; RedisUnavailable where there is no Redis
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
      return until(`${kind} ${metadata.name} to be there`, () => find(object));
    },
    async gone(object) {
      const { kind, metadata } = object;
      await until(`${kind} ${metadata.name} to be gone`, async () => {
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
