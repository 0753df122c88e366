import { clusterOf, type Settings } from "@konverge/contracts";
import {
  createLocalGate,
  formatApiVersion,
  isKonvergeError,
  type ResourceType,
} from "@konverge/core";
import { findCrdDrift, findServedIssue, type Resource } from "@konverge/engine";
import {
  findMissingAccess,
  isClusterProvider,
  namespacesOf,
  optionsOfCluster,
  requiredAccess,
  type ClusterProvider,
  type Config,
  type RequiredAccess,
} from "@konverge/worker";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { kubeconfigOf } from "../config/kubeconfig-of.ts";
import { readVersion } from "../process/version.ts";
import { checkBinding } from "./check-binding.ts";
import { failedCheck, type Check } from "./check.ts";
import { checkLeaders } from "./check-leaders.ts";

const INSTALL = "konverge crds --config <file> --apply";
const FORBIDDEN = 7;
const MISMATCH = 2;
/** Access reviews need one call per verb and resource. */
export const GATE = { ratePerSecond: 100, burst: 100 };

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
    const bound = hasRedis ? [await checkBinding(client, settings, config)] : [];
    const [served, allowed, led] = await Promise.all([
      checkKinds(client, config),
      checkPermissions(client, accessOf(config, settings), settings),
      checkLeaders(client, settings, config),
    ]);
    return [found, ...stored, ...bound, ...served, ...allowed, ...led];
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

function accessOf(config: Config, settings: Settings): RequiredAccess {
  const { prefix: installation, leaseNamespace } = settings;
  const namespaces = namespacesOf(settings, optionsOfCluster(config.clusters, clusterOf(settings)));
  return requiredAccess(config, { installation, leaseNamespace, namespaces });
}

async function checkKinds(client: KubeClient, { controllers }: Config): Promise<Check[]> {
  const types = new Map(
    controllers
      .flatMap(({ sources }) => sources)
      .map(({ type }) => [`${formatApiVersion(type.group, type.version)} ${type.kind}`, type]),
  );
  return await Promise.all([...types].map(([id, type]) => checkKind(client, id, type)));
}

async function checkKind(client: KubeClient, id: string, type: ResourceType): Promise<Check> {
  const { group, version, kind } = type;
  const check = `kind ${kind}`;
  try {
    const served = await client.resolveType(formatApiVersion(group, version), kind);
    const issue = findServedIssue(type, served);
    if (issue !== undefined) return { check, level: "fail", detail: issue, exitCode: MISMATCH };
    const drift = isResource(type) ? await findCrdDrift(type, client) : [];
    if (drift.length === 0) return { check, level: "ok", detail: `${id} is served` };
    const detail = `the CRD differs from the definition in ${drift.join(", ")}; run ${INSTALL}`;
    return { check, level: "warn", detail };
  } catch (error) {
    if (!isKonvergeError(error) || error.code !== "not_found") return failedCheck(check, error);
    const detail = `${id} is not served; run ${INSTALL}`;
    return { check, level: "fail", detail, exitCode: MISMATCH };
  }
}

function isResource(type: ResourceType): type is Resource {
  return "crd" in type;
}

/** Checks the permissions of this account. `where` is appended to the name of the check. */
export async function checkPermissions(
  client: KubeClient,
  needed: RequiredAccess,
  { leaseNamespace, where = "" }: { readonly leaseNamespace: string; readonly where?: string },
): Promise<Check[]> {
  const check = `permissions${where}`;
  try {
    const missing = await findMissingAccess(client, needed, leaseNamespace);
    const rules = [...missing.cluster, ...missing.leases];
    if (rules.length === 0) {
      return [{ check, level: "ok", detail: "all required permissions are granted" }];
    }
    return rules.map(({ apiGroups, resources, verbs }) => {
      const what = resources
        .map((resource) => (apiGroups[0] ? `${resource}.${apiGroups[0]}` : resource))
        .join(", ");
      const detail = `${verbs.join(", ")} of ${what} is forbidden; run \`konverge manifests\` for the roles`;
      return { check, level: "fail", detail, exitCode: FORBIDDEN };
    });
  } catch (error) {
    // A server without authorization, such as the embedded one, has no access reviews.
    const { detail } = failedCheck(check, error, "warn");
    return [{ check, level: "skip", detail: `access reviews unavailable: ${detail}` }];
  }
}
