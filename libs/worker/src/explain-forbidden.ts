import { findCause, KonvergeError } from "@konverge/core";
import { findMissingAccess } from "./config/find-missing-access.ts";
import { type AccessRule, type RequiredAccess } from "./config/controller-access.ts";
import { isForbidden, isKubeApiError, type KubeClient } from "@konverge/kube";

/**
 * Converts the error of a forbidden call to one that lists all missing rules. Returns other errors unchanged, and also this one
 * if the API server cannot be queried or allows everything in the meantime.
 */
export async function explainForbidden(
  thrown: unknown,
  client: KubeClient,
  { access, leaseNamespace }: { readonly access: RequiredAccess; readonly leaseNamespace: string },
): Promise<unknown> {
  if (!isForbidden(findCause(thrown, isKubeApiError))) return thrown;
  const asker = client.scoped({ priority: "critical" });
  // The original error is more useful than the error of its explanation.
  const missing = await findMissingAccess(asker, access, leaseNamespace).catch(() => undefined);
  const place =
    access.namespaces === undefined ? "ClusterRole" : `Role in ${access.namespaces.join(" and ")}`;
  const lines = [
    ...(missing?.cluster ?? []).map((rule) => `${place}: - ${textOf(rule)}`),
    ...(missing?.leases ?? []).map((rule) => `Role in ${leaseNamespace}: - ${textOf(rule)}`),
  ];
  if (lines.length === 0) return thrown;
  return new KonvergeError(
    "forbidden",
    `Kubernetes permissions are missing; add these rules to the roles of the worker's account ("konverge manifests" prints the complete roles):\n${lines.map((line) => `  ${line}`).join("\n")}`,
    { cause: thrown },
  );
}

/** A rule as YAML in one line. */
function textOf({ apiGroups, resources, resourceNames, verbs }: AccessRule): string {
  const list = (values: readonly string[]) =>
    `[${values.map((value) => (value === "" ? '""' : value)).join(", ")}]`;
  const names = resourceNames === undefined ? "" : ` resourceNames: ${list(resourceNames)},`;
  return `{ apiGroups: ${list(apiGroups)}, resources: ${list(resources)},${names} verbs: ${list(verbs)} }`;
}
