import { createLocalGate } from "@konverge/core";
import type { Config } from "@konverge/worker";
import { createKubeClient, loadKubeCredentials, type KubeCredentialsOptions } from "@konverge/kube";
import { resourcesOf } from "./crds-of.ts";
import { installCrds, type DefinedResource, type InstallCrdsOptions } from "./install-crds.ts";
import { readVersion } from "../process/version.ts";

export interface ApplyCrdsOptions extends InstallCrdsOptions {
  /** Kinds besides those that the configuration defines. */
  readonly others?: readonly DefinedResource[];
}

/** Applies the CRDs of a configuration, waits until the cluster serves them, and prints each to stderr. */
export async function applyCrds(
  config: Pick<Config, "controllers">,
  kubeconfig: KubeCredentialsOptions,
  { others = [], ...options }: ApplyCrdsOptions = {},
): Promise<void> {
  const client = createKubeClient({
    credentials: loadKubeCredentials(kubeconfig),
    gate: createLocalGate({ ratePerSecond: 50, burst: 50 }),
    userAgent: `konverge-cli/${readVersion()}`,
  });
  const resources = [...resourcesOf(config), ...others];
  try {
    await installCrds(client, resources, options);
    for (const { resource, group } of resources) {
      process.stderr.write(`applied ${resource}.${group}\n`);
    }
  } finally {
    await client.close();
  }
}
