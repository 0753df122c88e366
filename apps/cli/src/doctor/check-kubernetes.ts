import type { Settings } from "@konverge/contracts";
import { createLocalGate, formatApiVersion, isKonvergeError } from "@konverge/core";
import {
  findMissingAccess,
  requiredAccess,
  type Config,
  type RequiredAccess,
} from "@konverge/worker";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { kubeconfigOf } from "../config/kubeconfig-of.ts";
import { readVersion } from "../process/version.ts";
import { failedCheck, type Check } from "./check.ts";

const FORBIDDEN = 7;
const MISMATCH = 2;
/** Access reviews need one call per verb and resource. */
export const GATE = { ratePerSecond: 100, burst: 100 };

/** Checks that the API server of the kubeconfig responds, serves the kinds and grants the permissions. */
export async function checkKubernetes(
  settings: Settings,
  config: Config | undefined,
): Promise<Check[]> {
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
    const [served, allowed] = await Promise.all([
      checkKinds(client, config),
      checkPermissions(client, requiredAccess(config, settings.prefix), settings),
    ]);
    return [found, ...served, ...allowed];
  } catch (error) {
    return [failedCheck("kubernetes", error)];
  } finally {
    await client.close();
  }
}

async function checkKinds(client: KubeClient, { controllers }: Config): Promise<Check[]> {
  const types = new Map(
    controllers
      .flatMap(({ for: own, owns, watches }) => [own, ...owns, ...watches.map(({ type }) => type)])
      .map((type) => [`${formatApiVersion(type.group, type.version)} ${type.kind}`, type]),
  );
  return await Promise.all(
    [...types].map(async ([id, { group, version, kind, resource }]): Promise<Check> => {
      const check = `kind ${kind}`;
      const fix = "konverge crds --config <file> | kubectl apply -f -";
      try {
        const served = await client.resolveType(formatApiVersion(group, version), kind);
        if (served.resource === resource) return { check, level: "ok", detail: `${id} is served` };
        const detail = `the plural is "${served.resource}" in the cluster, but "${resource}" in the definition; set plural`;
        return { check, level: "fail", detail, exitCode: MISMATCH };
      } catch (error) {
        if (!isKonvergeError(error) || error.code !== "not_found") return failedCheck(check, error);
        const detail = `${id} is not served; run ${fix}`;
        return { check, level: "fail", detail, exitCode: MISMATCH };
      }
    }),
  );
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
