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
import { checkNeeds, GATE } from "./check-needs.ts";

/** What the checks of all clusters share. */
interface Shared {
  readonly settings: Settings;
  readonly config: Config;
  /** True if Redis can be read. */
  readonly hasRedis: boolean;
}

/** Lists the clusters of the provider, and checks that each responds and fits the controllers that run on it. */
export async function checkProvidedClusters(shared: Shared): Promise<Check[]> {
  const { settings, config } = shared;
  const { clusters } = config;
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
      checkCluster(name, name === own && rejected !== undefined ? rejected : cluster, {
        ...shared,
        open,
      }),
    );
    return [{ check, level: "ok", detail }, ...(await Promise.all(each)).flat()];
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
  {
    settings: all,
    open,
    ...shared
  }: Shared & {
    readonly open: (options: Parameters<typeof loadKubeCredentials>[0]) => KubeClient;
  },
): Promise<Check[]> {
  const check = `cluster ${name}`;
  try {
    if (cluster instanceof Error) throw cluster;
    const client = open({ ...credentialsOf(cluster), env: process.env });
    const { gitVersion } = await client.serverVersion();
    const settings = { ...all, cluster: name };
    const needs = await checkNeeds(client, { ...shared, settings, cluster: cluster.options });
    return [
      { check, level: "ok", detail: `${gitVersion} at ${client.server}` },
      ...needs.map((need) => ({ ...need, check: `${need.check} on ${name}` })),
    ];
  } catch (error) {
    return [failedCheck(check, error)];
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
