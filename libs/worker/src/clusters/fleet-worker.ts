import { clusterOf } from "@konverge/contracts";
import { KonvergeError, sleepMs } from "@konverge/core";
import { createShutdown, namesIn, type ReachedCluster } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import type { ClusterRegistry } from "@konverge/queue";
import { openClusterWorker, type ClusterWorker, type OpenWorker } from "../cluster-worker.ts";
import { namespacesOf } from "../config/cluster-options.ts";
import { defineConfig } from "../config/define-config.ts";
import { connectCluster, type ClusterConnection } from "../connect-cluster.ts";
import { assertRedis } from "../connect-worker.ts";
import { nextWorkerId, type OpenWorkerOptions } from "../worker-setup.ts";
import { ClusterLife } from "./cluster-life.ts";
import type { ClusterProvider, ProvidedCluster, ProvidedClusters } from "./cluster-provider.ts";
import type { ClusterStatus } from "./cluster-status.ts";
import { openRegistry, reported } from "./report-clusters.ts";
import { withHome } from "./with-home.ts";

/** Time until a call to a cluster that is not engaged is tried again, in ms. */
const AGAIN_MS = 5_000;

/** Longest wait of the start for clusters that do not respond, in ms. */
const FIRST_TRY_MS = 20_000;

/**
 * Runs the controllers and workflows of a configuration on all clusters of a provider, and follows the provider. A cluster that
 * cannot be engaged fails alone.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `redis_unsupported`
 */
export async function openFleetWorker(
  options: OpenWorkerOptions,
  provider: ClusterProvider,
): Promise<OpenWorker> {
  const { settings, log } = options;
  const config = defineConfig(options.config);
  await assertRedis({ url: settings.redisUrl }, log);
  const fleet = new FleetWorker({ ...options, config }, provider);
  try {
    await fleet.start();
    return fleet;
  } catch (error) {
    await fleet.kill();
    throw error;
  }
}

class FleetWorker implements OpenWorker {
  readonly workerId = nextWorkerId();
  readonly #options: OpenWorkerOptions;
  readonly #provider: ClusterProvider;
  readonly #lives = new Map<string, ClusterLife>();
  readonly #following = new AbortController();
  readonly #registry: ClusterRegistry;
  #home: Promise<ClusterConnection> | undefined;
  #unobserve: () => void = () => undefined;
  #isReady = false;
  #stopping: Promise<void> | undefined;

  /** The last rejection that was logged. */
  #rejected: string | undefined;

  constructor(options: OpenWorkerOptions, provider: ClusterProvider) {
    this.#options = options;
    this.#provider = provider;
    this.#registry = openRegistry(options, this.workerId);
  }

  /** Resolves when the first try to engage each cluster has ended. */
  async start(): Promise<void> {
    const { log, metrics, stopping } = this.#options;
    await this.#provider.follow({
      log,
      signal: this.#following.signal,
      onClusters: (clusters) => this.#follow(clusters),
      connectHome: () => this.#connectHome(),
    });
    this.#unobserve = metrics.observeClusters(() => this.clusters);
    this.#registry.follow(() => reported(this.clusters, this.#provider.description));
    const lives = [...this.#lives.values()];
    log.info({ provider: this.#provider.description, clusters: lives.length }, "clusters listed");
    const enough = new AbortController();
    const signal = AbortSignal.any([enough.signal, ...(stopping === undefined ? [] : [stopping])]);
    const first = Promise.all(lives.map(({ settled }) => settled));
    await Promise.race([first, sleepMs(FIRST_TRY_MS, signal).catch(() => undefined)]);
    enough.abort();
    this.#isReady = true;
  }

  get ready(): boolean {
    return this.#isReady;
  }

  get clusters(): readonly ClusterStatus[] {
    return [...this.#lives.values()].map(({ status }) => status);
  }

  stop({
    graceMs = this.#options.settings.shutdownGrace,
  }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#end((worker) => worker.stop({ graceMs }));
    return this.#stopping;
  }

  async kill(): Promise<void> {
    const killed = [...this.#lives.values()].map((life) => life.kill());
    this.#stopping ??= this.#end((worker) => worker.kill());
    await Promise.all(killed);
    await this.#stopping;
  }

  async #end(end: (worker: ClusterWorker) => Promise<void>): Promise<void> {
    this.#isReady = false;
    this.#following.abort();
    this.#unobserve();
    await Promise.all([...this.#lives.values()].map((life) => life.stop(end)));
    const home = await this.#home?.catch(() => undefined);
    const release = createShutdown(this.#options.log);
    await release.step("the connection to the home cluster", async () => await home?.close());
    await release.step("the list of clusters", () => this.#registry.close());
  }

  #follow(found: ProvidedClusters): void {
    if (this.#following.signal.aborted) return;
    const { settings, log } = this.#options;
    const { clusters: all, rejected } = withHome(this.#provider, found, clusterOf(settings));
    if (rejected !== undefined && rejected.message !== this.#rejected) {
      log.warn({ err: rejected }, "cluster not usable as provided");
    }
    this.#rejected = rejected?.message;
    for (const [name, life] of this.#lives) if (!all.has(name)) life.set(undefined);
    for (const [name, cluster] of all) {
      const life = this.#lives.get(name);
      if (life !== undefined) life.set(cluster);
      else this.#lives.set(name, this.#createLife(name, cluster));
    }
  }

  #createLife(name: string, first: ProvidedCluster | Error): ClusterLife {
    const clusters = {
      client: async (cluster: string) => (await this.#reach(cluster)).client,
      reach: (cluster: string) => this.#reach(cluster),
      namespaces: (cluster: string) =>
        namesIn(namespacesOf(this.#options.settings, this.#lives.get(cluster)?.cluster?.options)),
    };
    return new ClusterLife(
      {
        name,
        onChanged: () => this.#registry.changed(),
        onEnded: () => {
          this.#lives.delete(name);
          void this.#forgetMetrics(name);
          this.#registry.changed();
        },
        log: this.#options.log.child({ cluster: name }),
        engage: (cluster, options) =>
          openClusterWorker(this.#options, {
            name,
            cluster,
            clusters,
            workerId: this.workerId,
            registry: this.#registry,
            isListed: this.#provider.home === undefined,
            ...options,
          }),
      },
      first,
    );
  }

  async #forgetMetrics(name: string): Promise<void> {
    const { metrics, log } = this.#options;
    try {
      await metrics.forgetCluster(name);
    } catch (error) {
      log.warn({ err: error, cluster: name }, "metrics of a cluster not removed");
    }
  }

  /** @throws KonvergeError `invalid_request` for an unknown cluster, `deferred` for one that is not engaged */
  async #reach(name: string): Promise<ReachedCluster> {
    const life = this.#lives.get(name);
    if (life === undefined) {
      const names = [...this.#lives.keys()].join(", ");
      throw new KonvergeError(
        "invalid_request",
        `cluster "${name}" is not among the clusters of the ${this.#provider.description}: ${names || "none"}`,
      );
    }
    const { worker, status } = life;
    if (worker !== undefined) return { client: worker.home.client, lanes: worker.lanes };
    throw new KonvergeError(
      "deferred",
      `cluster "${name}" is ${status.state}${status.reason === undefined ? "" : `: ${status.reason}`}`,
      { retryAfterMs: AGAIN_MS },
    );
  }

  async #connectHome(): Promise<KubeClient> {
    const { settings, version, log, metrics, env, kubeconfigText, kubeConfig } = this.#options;
    const cluster = this.#provider.home ?? {};
    this.#home ??= connectCluster(
      { settings, version, workerId: `${this.workerId}-home`, log, metrics, env },
      {
        name: clusterOf(settings),
        cluster,
        kubeconfigText,
        kubeConfig,
        context: cluster.context ?? settings.context,
        namespaces: settings.namespaces ?? cluster.namespaces,
      },
    );
    return (await this.#home).client;
  }
}
