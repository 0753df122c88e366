import { clusterOf, type Settings } from "@konverge/contracts";
import { defined, ERRORS } from "@konverge/core";
import { isForbidden, type KubeClient } from "@konverge/kube";
import { findBindingIssue } from "@konverge/queue";
import {
  identityNamespace,
  namespacesOf,
  readClusterUid,
  type ClusterOptions,
} from "@konverge/worker";
import { failedCheck, type Check } from "./check.ts";

/** Checks that the data in Redis belongs to the connected cluster; a worker does not start otherwise. */
export async function checkBinding(
  client: KubeClient,
  settings: Settings,
  options: ClusterOptions,
): Promise<Check> {
  const check = "redis data";
  const { redisUrl, prefix } = settings;
  const cluster = clusterOf(settings);
  try {
    const namespaces = namespacesOf(settings, options);
    const uid = await readClusterUid(client, identityNamespace(namespaces, settings));
    const { shards } = options;
    const binding = { redis: { url: redisUrl }, prefix, cluster, uid, ...defined({ shards }) };
    const issue = await findBindingIssue(binding);
    if (issue === undefined) {
      return { check, level: "ok", detail: `belongs to this cluster (${uid}), or is new` };
    }
    const { exitCode } = ERRORS[issue.code];
    return { check, level: "fail", detail: issue.message, exitCode };
  } catch (error) {
    // The check of permissions reports it, with the rule.
    if (isForbidden(error))
      return { check, level: "skip", detail: failedCheck(check, error).detail };
    return failedCheck(check, error);
  }
}
