import { clusterOf, type Settings } from "@konverge/contracts";
import { formatApiVersion, isKonvergeError, type ResourceType } from "@konverge/core";
import { findCrdDrift, findServedIssue, selectsCluster, type Resource } from "@konverge/engine";
import {
  findMissingAccess,
  namespacesOf,
  requiredAccess,
  type ClusterOptions,
  type Config,
  type RequiredAccess,
} from "@konverge/worker";
import type { KubeClient } from "@konverge/kube";
import { checkBinding } from "./check-binding.ts";
import { failedCheck, type Check } from "./check.ts";
import { checkLeaders } from "./check-leaders.ts";
import { checkMarks } from "./check-marks.ts";

const INSTALL = "konverge crds --config <file> --apply";
const FORBIDDEN = 7;
const MISMATCH = 2;
/** Access reviews need one call per verb and resource. */
export const GATE = { ratePerSecond: 100, burst: 100 };

export interface NeedsOfCluster {
  /** Their `cluster` is the name of the cluster. */
  readonly settings: Settings;
  readonly config: Config;
  readonly cluster: ClusterOptions;
  /** True if Redis can be read. It stores the uid of the cluster that its data belongs to. */
  readonly hasRedis: boolean;
}

/**
 * Checks that the cluster is the one of the data in Redis, serves the kinds of the controllers that run on it, grants the
 * permissions, and that the controllers have leaders. Counts marks that steps of another installation have left.
 */
export async function checkNeeds(
  client: KubeClient,
  { settings, config: all, cluster, hasRedis }: NeedsOfCluster,
): Promise<Check[]> {
  const controllers = all.controllers.filter(({ clusters }) =>
    selectsCluster(clusters, clusterOf(settings), cluster.labels),
  );
  const config = { ...all, controllers };
  const { prefix: installation, leaseNamespace } = settings;
  const namespaces = namespacesOf(settings, cluster);
  const access = requiredAccess(config, { installation, leaseNamespace, namespaces });
  const bound = hasRedis ? [await checkBinding(client, settings, cluster)] : [];
  const [served, allowed, led, marked] = await Promise.all([
    checkKinds(client, config),
    checkPermissions(client, access, settings),
    checkLeaders(client, settings, config),
    hasRedis ? checkMarks(client, { settings, workflows: config.workflows, cluster }) : [],
  ]);
  return [...bound, ...served, ...allowed, ...led, ...marked];
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
