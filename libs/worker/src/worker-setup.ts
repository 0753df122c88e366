import { hostname } from "node:os";
import { clusterOf, type Settings } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import {
  createShutdown,
  selectsCluster,
  type Log,
  type NamespaceSelection,
  type Shutdown,
} from "@konverge/engine";
import { loadTracing, type Metrics, type Tracing } from "@konverge/telemetry";
import { requiredAccess } from "./config/controller-access.ts";
import { namespacesOf, type ClusterOptions } from "./config/cluster-options.ts";
import { defineConfig, type Config } from "./config/define-config.ts";
import {
  namesOfClusters,
  optionsOfCluster,
  type ProvidedCluster,
} from "./clusters/cluster-provider.ts";
import { openRegistry } from "./clusters/report-clusters.ts";
import type { OpenClusters } from "./open-clusters.ts";
import { explainForbidden } from "./explain-forbidden.ts";
import type { KubeClient, KubeConfigObject } from "@konverge/kube";
import type { ClusterRegistry } from "@konverge/queue";

export interface OpenWorkerOptions {
  readonly config: Config;
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly kubeconfigText?: string | undefined;
  readonly kubeConfig?: KubeConfigObject | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Ends the waits of the start. */
  readonly stopping?: AbortSignal;
}

/** One of several clusters that the worker serves. */
export interface Engagement {
  readonly name: string;
  readonly cluster: ProvidedCluster;
  /** The clusters that handlers and runs can reach. */
  readonly clusters: Pick<OpenClusters, "client" | "namespaces" | "reach">;
  /** The worker of the process. */
  readonly workerId: string;
  readonly registry: ClusterRegistry;
  /** True for a cluster of a list, whose address takes precedence over that of the process. */
  readonly isListed: boolean;
  /** Called when another name has taken the cluster. */
  readonly onLost: (error: KonvergeError) => void;
  /** Ends the start of the worker. */
  readonly signal: AbortSignal;
}

/** Distinguishes the workers of one process. */
let serial = 0;

/** Returns an ID that is unique among all workers. */
export function nextWorkerId(): string {
  serial += 1;
  return `${hostname()}-${process.pid}${serial === 1 ? "" : `-${serial}`}`;
}

/** The validated input of a worker, and the stack of what it must release. */
export class WorkerSetup {
  readonly options: OpenWorkerOptions;
  readonly config: Config;
  /** The name of the cluster. */
  readonly name: string;
  readonly cluster: ClusterOptions;
  readonly workerId: string;
  /** The clusters of all workers. */
  readonly registry: ClusterRegistry;
  readonly tracing: Tracing | undefined;
  readonly shutdown: Shutdown;
  readonly engagement: Engagement | undefined;
  /** Stops the worker once it has started, because the data in Redis has a format that it cannot use. */
  onHalt: (() => void) | undefined;
  /** Releases the cluster for other names, after the connections to it are closed. */
  claimed: (() => Promise<void>) | undefined;
  readonly #cleanup = new AsyncDisposableStack();

  private constructor(
    options: OpenWorkerOptions,
    parts: Pick<WorkerSetup, "config" | "name" | "cluster" | "tracing" | "engagement">,
  ) {
    this.options = { ...options, metrics: options.metrics.ofCluster(parts.name) };
    this.config = parts.config;
    this.name = parts.name;
    this.cluster = parts.cluster;
    this.tracing = parts.tracing;
    this.engagement = parts.engagement;
    this.workerId = parts.engagement?.workerId ?? nextWorkerId();
    this.shutdown = createShutdown(options.log);
    this.registry = parts.engagement?.registry ?? openRegistry(options, this.workerId);
    if (parts.engagement === undefined) {
      this.atEnd("the list of clusters", () => this.registry.close());
    }
  }

  /** @throws KonvergeError `invalid_config` */
  static async from(given: OpenWorkerOptions, engagement?: Engagement): Promise<WorkerSetup> {
    const options = engagement === undefined ? given : engagedOptions(given, engagement);
    const { settings, version } = options;
    // Validated again, for a configuration that did not come from defineConfig.
    const all = defineConfig(options.config);
    const name = engagement?.name ?? clusterOf(settings);
    const cluster = engagement?.cluster.options ?? optionsOfCluster(all.clusters, name);
    if (cluster === undefined) {
      const names = namesOfClusters(all.clusters).join(", ");
      throw new KonvergeError(
        "invalid_config",
        `KONVERGE_CLUSTER: "${name}" is not in the clusters of the configuration: ${names}`,
      );
    }
    const controllers = all.controllers.filter(({ clusters }) =>
      selectsCluster(clusters, name, cluster.labels),
    );
    const config = { ...all, controllers };
    const tracing = await loadTracing(version);
    const setup = new WorkerSetup(options, { config, name, cluster, tracing, engagement });
    setup.atEnd("the claim of the cluster", async () => await setup.claimed?.());
    if (tracing !== undefined) setup.atEnd("the last spans", () => tracing.flush());
    return setup;
  }

  /** The addresses that all parts of the worker share in Redis. */
  get place(): {
    readonly redis: { readonly url: string };
    readonly prefix: string;
    readonly cluster: string;
  } {
    const { redisUrl, prefix } = this.options.settings;
    return { redis: { url: redisUrl }, prefix, cluster: this.name };
  }

  /** The namespaces that the worker watches. Undefined: all. */
  get namespaces(): NamespaceSelection | undefined {
    return namespacesOf(this.options.settings, this.cluster);
  }

  get shards(): number {
    return this.cluster.shards ?? 1;
  }

  /** Stops the worker, which must not write data of a newer format. */
  halt(error: KonvergeError): void {
    this.options.log.error({ err: error }, "data format not usable, worker stopped");
    this.onHalt?.();
  }

  /** Registers what `dispose` releases, last first. */
  atEnd(what: string, run: () => Promise<void>): void {
    this.#cleanup.defer(() => this.shutdown.step(what, run));
  }

  async dispose(): Promise<void> {
    await this.#cleanup.disposeAsync();
  }

  /** Adds the missing permissions to an error of a forbidden call. */
  explain(error: unknown, client: KubeClient): Promise<unknown> {
    const { prefix, leaseNamespace } = this.options.settings;
    const { namespaces } = this;
    return explainForbidden(error, client, {
      access: requiredAccess(this.config, { installation: prefix, namespaces, leaseNamespace }),
      leaseNamespace,
    });
  }
}

/** The options of a worker that serves only this cluster. */
function engagedOptions(
  options: OpenWorkerOptions,
  { name, isListed, cluster: { options: given } }: Engagement,
): OpenWorkerOptions {
  const { settings, log } = options;
  const hasFile = isListed && given.kubeconfig !== undefined;
  const hasAddress = hasFile || (isListed && given.context !== undefined);
  return {
    ...options,
    ...(hasFile ? { kubeconfigText: undefined, kubeConfig: undefined } : {}),
    settings: { ...settings, cluster: name, context: hasAddress ? undefined : settings.context },
    log: log.child({ cluster: name }),
  };
}
