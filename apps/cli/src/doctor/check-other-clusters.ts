import { clusterOf, type Settings } from "@konverge/contracts";
import { createLocalGate } from "@konverge/core";
import { namesIn } from "@konverge/engine";
import { namesOfClusters, optionsOfCluster, requiredAccess, type Config } from "@konverge/worker";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { kubeconfigOf } from "../config/kubeconfig-of.ts";
import { readVersion } from "../process/version.ts";
import { failedCheck, type Check } from "./check.ts";
import { checkPermissions, GATE } from "./check-needs.ts";

/** Checks that the other clusters of workflows respond and grant the permissions. */
export async function checkOtherClusters(
  settings: Settings,
  { clusters, workflows }: Config,
): Promise<Check[]> {
  if (workflows.length === 0) return [];
  const others = namesOfClusters(clusters).filter((name) => name !== clusterOf(settings));
  const checks = await Promise.all(
    others.map((name) => checkCluster(name, settings, { clusters, workflows })),
  );
  return checks.flat();
}

async function checkCluster(
  name: string,
  settings: Settings,
  { clusters, workflows }: Pick<Config, "clusters" | "workflows">,
): Promise<Check[]> {
  const check = `cluster ${name}`;
  const options = optionsOfCluster(clusters, name) ?? {};
  const { kubeconfig, context } = options;
  if (kubeconfig === undefined && context === undefined) {
    const detail = `clusters.${name} has neither kubeconfig nor context; set one, so that workflows can reach it`;
    return [{ check, level: "warn", detail }];
  }
  let client: KubeClient | undefined;
  try {
    // The context of the settings belongs to the worker's own cluster.
    const kubeconfigOptions = kubeconfigOf(
      { ...settings, cluster: name, context: undefined },
      { clusters },
    );
    const credentials = loadKubeCredentials(kubeconfigOptions);
    const userAgent = `konverge-doctor/${readVersion()}`;
    client = createKubeClient({ credentials, gate: createLocalGate(GATE), userAgent });
    const { gitVersion } = await client.serverVersion();
    // Controllers, which follow namespaces by labels, run in the worker's own cluster only.
    const namespaces = namesIn(options.namespaces);
    // Leases and Events are in the worker's own cluster.
    const { cluster } = requiredAccess(
      { controllers: [], workflows },
      {
        installation: settings.prefix,
        leaseNamespace: settings.leaseNamespace,
        namespaces,
      },
    );
    const needed = cluster.filter(({ resources }) => !resources.includes("events"));
    const permissions = await checkPermissions(
      client,
      { cluster: needed, leases: [], namespaces },
      { ...settings, where: ` on ${name}` },
    );
    return [{ check, level: "ok", detail: `${gitVersion} at ${client.server}` }, ...permissions];
  } catch (error) {
    return [failedCheck(check, error)];
  } finally {
    await client?.close();
  }
}
