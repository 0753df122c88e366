import type { Engine } from "@konverge/engine";
import type { ObjectLanes } from "@konverge/lanes";
import type { ClusterRegistry, QueueWorker } from "@konverge/queue";
import type { ClusterStatus } from "./clusters/cluster-status.ts";
import type { ClusterConnection } from "./connect-cluster.ts";
import { connectHome, connectWorker, type WorkerConnections } from "./connect-worker.ts";
import { startObjectReads } from "./serve-reads.ts";
import { startWorkerEngine } from "./worker-engine.ts";
import { WorkerSetup, type Engagement, type OpenWorkerOptions } from "./worker-setup.ts";
import { startWorkerMutations } from "./worker-mutations.ts";
import { startNotifier } from "./notify/start-notifier.ts";
import { startWorkerWorkflows } from "./worker-workflows.ts";

/** A worker that leaves the process alone: no signals, no ports, no exit. */
export interface OpenWorker {
  readonly workerId: string;
  /** True from the first lists until it stops, while the API server is reachable from here. */
  readonly ready: boolean;
  /** The clusters that the worker serves. */
  readonly clusters: readonly ClusterStatus[];
  /** Takes no new work, waits up to `graceMs` for running attempts, aborts the rest, and releases everything. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** As `stop`, or during one, but aborts running attempts at once; their keys run again in another worker. */
  kill(): Promise<void>;
}

/** A worker on one cluster. */
export interface ClusterWorker extends Omit<OpenWorker, "clusters"> {
  readonly home: ClusterConnection;
  readonly lanes: ObjectLanes;
  /** The name of the cluster. */
  readonly name: string;
  /** Identifies the cluster. */
  readonly uid: string;
  readonly registry: ClusterRegistry;
}

/** The reason of a cluster whose circuit breaker is open. */
export const UNUSABLE = "the API server cannot be used; run konverge guard show";

/** Returns undefined if it cannot be read now. */
export async function readServerVersion({
  home,
}: Pick<ClusterWorker, "home">): Promise<string | undefined> {
  try {
    return (await home.client.serverVersion()).gitVersion;
  } catch {
    return undefined;
  }
}

/** Runs the controllers and workflows of a configuration on one cluster. @throws as `openWorker` */
export async function openClusterWorker(
  options: OpenWorkerOptions,
  engagement?: Engagement,
): Promise<ClusterWorker> {
  const setup = await WorkerSetup.from(options, engagement);
  let started: ClusterWorker | undefined;
  const { metrics, settings } = setup.options;
  const isReady = () => started?.ready ?? false;
  const unobserve = metrics.observeWorker({ role: settings.role, isReady });
  setup.atEnd("the metrics of the worker", async () => unobserve());
  try {
    const home = await connectHome(setup);
    // Ends the calls of a start that is no longer wanted.
    const onAbort = () => void home.close();
    engagement?.signal.addEventListener("abort", onAbort, { once: true });
    try {
      engagement?.signal.throwIfAborted();
      const worker = await startOn(home, setup);
      setup.onHalt = () => void worker.stop({ graceMs: 0 });
      started = worker;
      return worker;
    } catch (error) {
      throw await setup.explain(error, home.client);
    } finally {
      engagement?.signal.removeEventListener("abort", onAbort);
    }
  } catch (error) {
    await setup.dispose();
    throw error;
  }
}

async function startOn(home: ClusterConnection, setup: WorkerSetup): Promise<ClusterWorker> {
  const connections = await connectWorker(setup, home);
  const unobserve = setup.options.metrics.observeServer(() => connections.history.readServer());
  setup.atEnd("the metrics of Redis", async () => unobserve());
  const engine = await startWorkerEngine(setup, connections);
  startWorkerWorkflows(setup, connections);
  const mutations = startWorkerMutations(setup, connections);
  startObjectReads(setup, engine);
  startNotifier(setup, connections);
  const { workerId, place, options } = setup;
  options.log.debug(
    { workerId, role: options.settings.role, cluster: place.cluster, server: home.client.server },
    "worker started",
  );
  return new StartedWorker(setup, connections, { engine, mutations });
}

class StartedWorker implements ClusterWorker {
  readonly #setup: WorkerSetup;
  readonly #connections: WorkerConnections;
  readonly #engine: Engine;
  readonly #mutations: QueueWorker | undefined;
  #stopping: Promise<void> | undefined;

  constructor(
    setup: WorkerSetup,
    connections: WorkerConnections,
    { engine, mutations }: { readonly engine: Engine; readonly mutations: QueueWorker | undefined },
  ) {
    this.#setup = setup;
    this.#connections = connections;
    this.#engine = engine;
    this.#mutations = mutations;
  }

  get workerId(): string {
    return this.#setup.workerId;
  }

  get home(): ClusterConnection {
    return this.#connections.home;
  }

  get lanes(): ObjectLanes {
    return this.#connections.lanes;
  }

  get uid(): string {
    return this.#connections.uid;
  }

  get name(): string {
    return this.#setup.name;
  }

  get registry(): ClusterRegistry {
    return this.#setup.registry;
  }

  get ready(): boolean {
    const { health } = this.#connections.home.guard;
    return this.#engine.ready && health !== "unwell" && health !== "unauthorized";
  }

  stop({
    graceMs = this.#setup.options.settings.shutdownGrace,
  }: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#stopping === undefined) {
      this.#setup.options.log.info({ graceMs }, "worker stopping");
      this.#stopping = this.#release([
        this.#engine.stop({ graceMs }),
        this.#connections.runner.stop({ graceMs }),
        this.#mutations?.stop({ graceMs }) ?? Promise.resolve(),
      ]);
    }
    return this.#stopping;
  }

  async kill(): Promise<void> {
    this.#setup.options.log.info({}, "aborting running attempts");
    const killed = [
      this.#engine.kill(),
      this.#connections.runner.kill(),
      this.#mutations?.kill() ?? Promise.resolve(),
    ];
    this.#stopping ??= this.#release(killed);
    await Promise.all(killed);
    await this.#stopping;
  }

  async #release(ends: readonly Promise<void>[]): Promise<void> {
    await Promise.all(ends);
    await this.#setup.dispose();
    this.#setup.options.log.info({}, "worker stopped");
  }
}
