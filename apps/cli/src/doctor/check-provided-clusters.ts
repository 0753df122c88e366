import { clusterOf, type Settings } from "@konverge/contracts";
import { createLocalGate } from "@konverge/core";
import {
  credentialsOf,
  isClusterProvider,
  withHome,
  type Config,
  type FollowClustersOptions,
  type ProvidedCluster,
  type ProvidedClusters,
} from "@konverge/worker";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { kubeconfigOf } from "../config/kubeconfig-of.ts";
import { readVersion } from "../process/version.ts";
import { failedCheck, type Check } from "./check.ts";
import { GATE } from "./check-kubernetes.ts";

/** Lists the clusters of the provider, and checks that each responds. */
export async function checkProvidedClusters(
  settings: Settings,
  { clusters }: Pick<Config, "clusters">,
): Promise<Check[]> {
  if (!isClusterProvider(clusters)) return [];
  const opened: KubeClient[] = [];
  const open = (options: Parameters<typeof loadKubeCredentials>[0]): KubeClient => {
    const credentials = loadKubeCredentials(options);
    const userAgent = `konverge-doctor/${readVersion()}`;
    const client = createKubeClient({ credentials, gate: createLocalGate(GATE), userAgent });
    opened.push(client);
    return client;
  };
  const following = new AbortController();
  let found: ProvidedClusters = new Map();
  const check = "clusters";
  try {
    await clusters.follow({
      signal: following.signal,
      log: silent,
      onClusters: (all) => {
        found = all;
      },
      connectHome: async () => open(kubeconfigOf(settings, { clusters })),
    });
    const detail = `${found.size} in the ${clusters.description}`;
    const own = clusterOf(settings);
    const { clusters: all, rejected } = withHome(clusters, found, own);
    // The other checks are about an engaged home cluster.
    const others = [...all].filter(([name]) => name !== own || found.has(name));
    const each = others.map(([name, cluster]) =>
      checkCluster(name, name === own && rejected !== undefined ? rejected : cluster, open),
    );
    return [{ check, level: "ok", detail }, ...(await Promise.all(each))];
  } catch (error) {
    return [failedCheck(check, error)];
  } finally {
    following.abort();
    await Promise.all(opened.map((client) => client.close()));
  }
}

async function checkCluster(
  name: string,
  cluster: ProvidedCluster | Error,
  open: (options: Parameters<typeof loadKubeCredentials>[0]) => KubeClient,
): Promise<Check> {
  const check = `cluster ${name}`;
  try {
    if (cluster instanceof Error) throw cluster;
    const client = open({ ...credentialsOf(cluster), env: process.env });
    const { gitVersion } = await client.serverVersion();
    return { check, level: "ok", detail: `${gitVersion} at ${client.server}` };
  } catch (error) {
    return failedCheck(check, error);
  }
}

const ignore = () => undefined;
const silent: FollowClustersOptions["log"] = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  child: () => silent,
};
