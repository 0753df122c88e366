import { KonvergeError, sleepMs, type ApiObject, type ResourceType } from "@konverge/core";
import { findOwners, isServed, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";

/** A real server takes about 100 ms to serve a new definition. */
const SERVED_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 25;

/**
 * The field manager of `kubectl apply --server-side`, so that CRDs applied by kubectl and by this command do not conflict.
 */
const MANAGER = "kubectl";
/** Field managers of clients that apply the same CRDs: kubectl in all its modes, and this command. */
const OWN_MANAGER = /^(kubectl|konverge)\b/;

/** A kind with its CRD. */
export type DefinedResource = ResourceType & { crd(): ApiObject };

export interface InstallCrdsOptions {
  /** Take fields from other managers, such as a GitOps controller. */
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Applies the CRDs of the resources and waits until the server serves them.
 * @throws KonvergeError `field_conflict` if another manager owns fields with other values
 * @throws KonvergeError `crd_mismatch` if the CRDs are not served
 */
export async function installCrds(
  client: KubeClient,
  resources: readonly DefinedResource[],
  { force = false, signal }: InstallCrdsOptions = {},
): Promise<void> {
  const scoped = client.scoped({ fieldManager: MANAGER });
  for (const resource of resources) await applyCrd(scoped, resource, force);
  const endMs = performance.now() + SERVED_LIMIT_MS;
  for (const resource of resources) {
    while (!(await isServed(client, resource))) {
      if (performance.now() >= endMs) {
        throw new KonvergeError(
          "crd_mismatch",
          `the API server accepted the CRD of ${resource.kind}, but does not serve it after ${SERVED_LIMIT_MS / 1_000} s; check its conditions with \`kubectl get crd ${resource.resource}.${resource.group} -o yaml\``,
        );
      }
      await sleepMs(LOOK_EVERY_MS, signal);
    }
  }
}

async function applyCrd(
  client: KubeClient,
  resource: DefinedResource,
  force: boolean,
): Promise<void> {
  try {
    await client.apply(CustomResourceDefinition, resource.crd(), { force });
  } catch (error) {
    const owners = findOwners(error);
    if (owners.length === 0) throw error;
    const others = owners.filter(({ manager }) => !OWN_MANAGER.test(manager));
    if (others.length > 0) throw conflict(resource, others);
    await client.apply(CustomResourceDefinition, resource.crd(), { force: true });
  }
}

function conflict(
  { resource, group }: DefinedResource,
  owners: ReturnType<typeof findOwners>,
): KonvergeError {
  const fields = owners.map(({ manager, paths }) => `${paths.join(", ")} ("${manager}")`);
  return new KonvergeError(
    "field_conflict",
    `the CRD ${resource}.${group} has other values in fields of another field manager: ${fields.join("; ")}; ` +
      "change the CRD there, or take the fields over with `konverge crds --config <file> --apply --force`",
  );
}
