import { clusterOf, type Settings } from "@konverge/contracts";
import { createLocalGate } from "@konverge/core";
import {
  isClusterProvider,
  optionsOfCluster,
  type ClusterProvider,
  type Config,
} from "@konverge/worker";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { kubeconfigOf } from "../config/kubeconfig-of.ts";
import { readVersion } from "../process/version.ts";
import { failedCheck, type Check } from "./check.ts";
import { checkNeeds, checkPermissions, GATE } from "./check-needs.ts";

export interface KubernetesChecks {
  readonly settings: Settings;
  /** Without it, only the API server itself is checked. */
  readonly config: Config | undefined;
  /** True if Redis can be read. It stores the uid of the cluster that its data belongs to. */
  readonly hasRedis: boolean;
}

/**
 * Checks that the API server of the kubeconfig responds, serves the kinds, grants the permissions, and is the one of the
 * data in Redis.
 */
export async function checkKubernetes({
  settings,
  config,
  hasRedis,
}: KubernetesChecks): Promise<Check[]> {
  let client: KubeClient;
  try {
    const credentials = loadKubeCredentials(kubeconfigOf(settings, config));
    const userAgent = `konverge-doctor/${readVersion()}`;
    client = createKubeClient({ credentials, gate: createLocalGate(GATE), userAgent });
  } catch (error) {
    // Without a configuration, the cluster is optional.
    return [failedCheck("kubernetes", error, config === undefined ? "warn" : "fail")];
  }
  try {
    const { gitVersion } = await client.serverVersion();
    const found: Check = {
      check: "kubernetes",
      level: "ok",
      detail: `${gitVersion} at ${client.server}`,
    };
    if (config === undefined) {
      const detail = "set --config <file> to check kinds and permissions";
      return [found, { check: "permissions", level: "skip", detail }];
    }
    const { clusters } = config;
    const stored = isClusterProvider(clusters)
      ? await checkSecretAccess(client, clusters, settings)
      : [];
    if (isClusterProvider(clusters) && clusters.home?.engage !== true) return [found, ...stored];
    const cluster = optionsOfCluster(clusters, clusterOf(settings)) ?? {};
    const needs = await checkNeeds(client, { settings, config, cluster, hasRedis });
    return [found, ...stored, ...needs];
  } catch (error) {
    return [failedCheck("kubernetes", error)];
  } finally {
    await client.close();
  }
}

/** Checks that the provider can read the Secrets of its namespace, if it reads any. */
async function checkSecretAccess(
  client: KubeClient,
  { secretsNamespace }: ClusterProvider,
  { leaseNamespace }: Settings,
): Promise<Check[]> {
  if (secretsNamespace === undefined) return [];
  const secrets = { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] } as const;
  const needed = { cluster: [secrets], namespaces: [secretsNamespace], leases: [] };
  const where = ` in namespace ${secretsNamespace}`;
  return await checkPermissions(client, needed, { leaseNamespace, where });
}
