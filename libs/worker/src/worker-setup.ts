import { hostname } from "node:os";
import type { Settings } from "@konverge/contracts";
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
import type { OpenClusters } from "./open-clusters.ts";
import { explainForbidden } from "./explain-forbidden.ts";
import type { KubeClient, KubeConfigObject } from "@konverge/kube";

export interface OpenWorkerOptions {
  readonly config: Config;
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly kubeconfigText?: string | undefined;
  readonly kubeConfig?: KubeConfigObject | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** A cluster of a provider that the worker serves. */
export interface Engagement {
  readonly name: string;
  readonly cluster: ProvidedCluster;
  /** The clusters that handlers and runs can reach. */
  readonly clusters: Pick<OpenClusters, "client" | "namespaces" | "reach">;
  /** Ends the start of the worker. */
  readonly signal: AbortSignal;
}

/** Distinguishes the workers of one process. */
let serial = 0;

/** The validated input of a worker, and the stack of what it must release. */
export class WorkerSetup {
  readonly options: OpenWorkerOptions;
  readonly config: Config;
  readonly cluster: ClusterOptions;
  readonly workerId: string;
  readonly tracing: Tracing | undefined;
  readonly shutdown: Shutdown;
  readonly engagement: Engagement | undefined;
  readonly #cleanup = new AsyncDisposableStack();

  private constructor(
    options: OpenWorkerOptions,
    parts: Pick<WorkerSetup, "config" | "cluster" | "tracing" | "engagement">,
  ) {
    serial += 1;
    this.options = options;
    this.config = parts.config;
    this.cluster = parts.cluster;
    this.tracing = parts.tracing;
    this.engagement = parts.engagement;
    this.workerId = `${hostname()}-${process.pid}${serial === 1 ? "" : `-${serial}`}`;
    this.shutdown = createShutdown(options.log);
  }

  /** @throws KonvergeError `invalid_config` */
  static async from(given: OpenWorkerOptions, engagement?: Engagement): Promise<WorkerSetup> {
    const options = engagement === undefined ? given : engagedOptions(given, engagement);
    const { settings, version } = options;
    // Validated again, for a configuration that did not come from defineConfig.
    const all = defineConfig(options.config);
    const labels = engagement?.cluster.options.labels;
    const controllers = all.controllers.filter(({ clusters }) =>
      selectsCluster(clusters, settings.cluster, labels),
    );
    const config = { ...all, controllers };
    const cluster =
      engagement?.cluster.options ?? optionsOfCluster(config.clusters, settings.cluster);
    if (cluster === undefined) {
      const names = namesOfClusters(config.clusters).join(", ");
      throw new KonvergeError(
        "invalid_config",
        `KONVERGE_CLUSTER: "${settings.cluster}" is not in the clusters of the configuration: ${names}`,
      );
    }
    const tracing = await loadTracing(version);
    const setup = new WorkerSetup(options, { config, cluster, tracing, engagement });
    if (tracing !== undefined) setup.atEnd("the last spans", () => tracing.flush());
    return setup;
  }

  /** The addresses that all parts of the worker share in Redis. */
  get place(): {
    readonly redis: { readonly url: string };
    readonly prefix: string;
    readonly cluster: string;
  } {
    const { redisUrl, prefix, cluster } = this.options.settings;
    return { redis: { url: redisUrl }, prefix, cluster };
  }

  /** The namespaces that the worker watches. Undefined: all. */
  get namespaces(): NamespaceSelection | undefined {
    return namespacesOf(this.options.settings, this.cluster);
  }

  get shards(): number {
    return this.cluster.shards ?? 1;
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
function engagedOptions(options: OpenWorkerOptions, { name }: Engagement): OpenWorkerOptions {
  const { config, settings, log } = options;
  return {
    ...options,
    config,
    settings: { ...settings, cluster: name },
    log: log.child({ cluster: name }),
  };
}
