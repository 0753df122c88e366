import { readSettings } from "@konverge/contracts";
import { defined, KonvergeError, type JsonObject } from "@konverge/core";
import { loadCrds } from "./load-crds.ts";

/** Where CRDs are read: files, or the cluster of a kubeconfig. */
export interface CrdSource {
  readonly files: readonly string[];
  readonly fromCluster?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** Returns the CRDs of files, or of a cluster. @throws KonvergeError `invalid_request`, `not_found` */
export async function findCrds(source: CrdSource): Promise<JsonObject[]> {
  if (source.fromCluster !== true) return (await Promise.all(source.files.map(loadCrds))).flat();
  const settings = readSettings({ env: process.env });
  const { kubeconfig = settings.kubeconfig, context = settings.context } = source;
  const { listCrds } = await import("./list-crds.ts");
  const crds = await listCrds(defined({ kubeconfigPath: kubeconfig, context }));
  if (crds.length > 0) return crds;
  throw new KonvergeError("not_found", "the cluster has no CRDs; check the kubeconfig and context");
}
