import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { clusterOf, readSettings, type Settings } from "@konverge/contracts";
import {
  createLocalGate,
  defined,
  guardLimits,
  invalidConfig,
  type ErrorIssue,
  type Gate,
} from "@konverge/core";
import { createDirectKube, type Log } from "@konverge/engine";
import {
  createKubeClient,
  isKubeConfig,
  loadKubeCredentials,
  type KubeCalls,
  type KubeClient,
  type KubeConfigObject,
} from "@konverge/kube";
import { bindCluster } from "@konverge/queue";
import { createLogger } from "@konverge/telemetry";
import { clusterLimits, credentialsFrom, findClusterIssues } from "./config/cluster-options.ts";
import type { ClusterOptions } from "./config/cluster-options.ts";
import { identityNamespace, readClusterUid } from "./connect-cluster.ts";
import { startGuard } from "./start-guard.ts";

/** The options of {@link openKube}. */
export interface OpenKubeOptions extends Omit<ClusterOptions, "kubeconfig" | "labels"> {
  /** Name of the program: its field manager, its `User-Agent`, and the reporter of its events. */
  readonly name: string;
  /**
   * Path or text of a kubeconfig, or a loaded `KubeConfig` of `@kubernetes/client-node`. Default: found with `env`, as kubectl
   * does.
   */
  readonly kubeconfig?: string | { readonly text: string } | KubeConfigObject;
  /** The namespace of names without one. Default `default`. */
  readonly namespace?: string;
  /**
   * URL of the workers' Redis. The calls then count towards the rate limit and the circuit breaker of the cluster. The limits of
   * the workers apply; those of the options only if no worker has ever stored any. Default: none, and the rate is that of this
   * process.
   */
  readonly redis?: string;
  /** Prefix of the installation in Redis. Default `konverge`. */
  readonly prefix?: string;
  /** Name of the cluster in the configuration of the workers. Default `default`. */
  readonly cluster?: string;
  /** Namespace of the workers' Leases. Used only with `namespaces`, to identify the cluster. Default as in the settings. */
  readonly leaseNamespace?: string;
  /** Environment in which to find a kubeconfig, a service account and a proxy; usually `process.env`. Default: empty. */
  readonly env?: NodeJS.ProcessEnv;
  /** A logger compatible with pino. Default: JSON lines on stderr, warnings and errors only. */
  readonly log?: Log;
}

/** The calls of a handler, for a program that is no worker. */
export interface OpenKube extends KubeCalls<"handler">, AsyncDisposable {
  /** Closes the connections. Calls in flight fail. */
  close(): Promise<void>;
}

const NAME = /^[A-Za-z0-9][-\w.]{0,99}$/;

/**
 * Opens the calls of a handler for scripts and services: the same methods, connections and errors, and `kube.api` for code of
 * client-node. Nothing is recorded, because there is no attempt. Cached reads and `reconcileChildren` exist only in handlers.
 *
 * @example
 * await using kube = await openKube({ name: "report", env: process.env });
 * const pods = await kube.list(Pod, { namespace: "shop" });
 *
 * @throws KonvergeError `invalid_config`; with `redis` also `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`
 */
export async function openKube(options: OpenKubeOptions): Promise<OpenKube> {
  checkOptions(options);
  const { name, namespace = "default" } = options;
  const settings = settingsOf(options);
  const log =
    options.log ??
    createLogger({ service: name, version: "1", level: "warn", destination: process.stderr });
  await using cleanup = new AsyncDisposableStack();
  const probe = { call: async (_signal: AbortSignal): Promise<unknown> => undefined };
  const gate = await openGate(options, { settings, log, cleanup, probe });
  const client = openClient(options, settings, gate);
  cleanup.defer(() => client.close());
  if (options.redis !== undefined) await joinCluster(options, { settings, client, probe });
  const ending = cleanup.move();
  const close = () => ending.disposeAsync();
  const kube = createDirectKube(client, namespace, {
    component: name,
    onEventError: (err) => log.warn({ err }, "event not recorded"),
  });
  return { ...kube, close, [Symbol.asyncDispose]: close };
}

/** Is replaced after the client is created, because the client needs the gate first. */
interface Probe {
  call: (signal: AbortSignal) => Promise<unknown>;
}

interface GateParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly cleanup: AsyncDisposableStack;
  readonly probe: Probe;
}

async function openGate(options: OpenKubeOptions, parts: GateParts): Promise<Gate> {
  const { settings, log, cleanup, probe } = parts;
  const { name, kubeconfig: _own, ...cluster } = options;
  if (options.redis === undefined) return createLocalGate(guardLimits(clusterLimits(cluster)));
  const guard = await startGuard({
    settings,
    name: clusterOf(settings),
    cluster,
    workerId: `${name}-${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`,
    log,
    probe: (signal) => probe.call(signal),
    keepLimits: true,
  });
  cleanup.defer(() => guard.close());
  return guard;
}

function openClient(options: OpenKubeOptions, settings: Settings, gate: Gate): KubeClient {
  const { name, kubeconfig, context, maxInFlight, env = {} } = options;
  const source =
    typeof kubeconfig === "object" && !isKubeConfig(kubeconfig)
      ? { kubeconfigText: kubeconfig.text }
      : credentialsFrom(kubeconfig);
  return createKubeClient({
    credentials: loadKubeCredentials({ env, ...source, ...defined({ context }) }),
    gate,
    userAgent: `${name}/1`,
    fieldManager: name,
    requestTimeoutMs: settings.requestTimeout,
    ...defined({ maxConnections: maxInFlight }),
  });
}

interface Joining {
  readonly settings: Settings;
  readonly client: KubeClient;
  readonly probe: Probe;
}

/** Compares the cluster with that of the workers, whose breaker the calls would otherwise open for another server. */
async function joinCluster(
  { namespaces, shards }: OpenKubeOptions,
  { settings, client, probe }: Joining,
): Promise<void> {
  const identity = identityNamespace(namespaces, settings);
  probe.call = (signal) =>
    readClusterUid(client.scoped({ signal, priority: "critical", isProbe: true }), identity);
  const uid = await readClusterUid(client, identity);
  const { redisUrl, prefix } = settings;
  const binding = { redis: { url: redisUrl }, prefix, cluster: clusterOf(settings), uid };
  await bindCluster({ ...binding, shards: shards ?? "any" });
}

function settingsOf({ redis, prefix, cluster, leaseNamespace }: OpenKubeOptions): Settings {
  const file = defined({ redisUrl: redis, prefix, cluster, leaseNamespace });
  return readSettings({ file, env: {} });
}

/** A table, so that a new option without an entry does not compile. */
const OWN: Readonly<Record<Exclude<keyof OpenKubeOptions, keyof ClusterOptions>, true>> = {
  name: true,
  namespace: true,
  redis: true,
  prefix: true,
  cluster: true,
  leaseNamespace: true,
  env: true,
  log: true,
};

function checkOptions(options: OpenKubeOptions): void {
  const { name, kubeconfig, redis, breaker } = options;
  const ofCluster = Object.entries(options).filter(
    ([option]) => !Object.hasOwn(OWN, option) && option !== "kubeconfig",
  );
  const clusterIssues = findClusterIssues({ options: Object.fromEntries(ofCluster) });
  const issues: ErrorIssue[] = clusterIssues.map(({ pointer, detail }) => ({
    pointer: pointer.replace("/clusters/options", ""),
    detail: detail.replace("clusters.options.", ""),
  }));
  if (typeof name !== "string" || !NAME.test(name)) {
    const detail = "name: must be 1 to 100 letters, digits, dots, dashes and underscores";
    issues.push({ pointer: "/name", detail: `${detail}, such as "report"` });
  }
  if (!isKubeconfigSource(kubeconfig)) {
    const detail = "kubeconfig: must be a path, { text }, or a KubeConfig of client-node";
    issues.push({ pointer: "/kubeconfig", detail });
  }
  if (redis === undefined && breaker !== undefined) {
    const detail = "breaker: needs redis, where processes share it; set redis, or omit breaker";
    issues.push({ pointer: "/breaker", detail });
  }
  if (issues.length > 0) throw invalidConfig(issues, "the options of openKube are");
}

function isKubeconfigSource(value: unknown): boolean {
  if (value === undefined || typeof value === "string" || isKubeConfig(value)) return true;
  return (
    typeof value === "object" && value !== null && "text" in value && typeof value.text === "string"
  );
}
