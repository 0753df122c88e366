import { findCause, KonvergeError } from "@konverge/core";
import { findMissingAccess } from "./config/find-missing-access.ts";
import { type AccessRule, type RequiredAccess } from "./config/controller-access.ts";
import { isForbidden, isKubeApiError, type KubeClient } from "@konverge/kube";

/**
 * The error of a call that the API server forbade, as one that names every rule that is missing. Other errors come back as
 * they are, and so does this one where the API server cannot be asked, or allows everything by now.
 */
export async function explainForbidden(
  thrown: unknown,
  client: KubeClient,
  { access, leaseNamespace }: { readonly access: RequiredAccess; readonly leaseNamespace: string },
): Promise<unknown> {
  if (!isForbidden(findCause(thrown, isKubeApiError))) return thrown;
  const asker = client.scoped({ priority: "critical" });
  // What was refused is worth more than why that cannot be explained.
  const missing = await findMissingAccess(asker, access, leaseNamespace).catch(() => undefined);
  const lines = [
    ...(missing?.cluster ?? []).map((rule) => `ClusterRole: - ${textOf(rule)}`),
    ...(missing?.leases ?? []).map((rule) => `Role in ${leaseNamespace}: - ${textOf(rule)}`),
  ];
  if (lines.length === 0) return thrown;
  return new KonvergeError(
    "forbidden",
    `the API server forbids this worker what its controllers need; add to the roles of its account, which "konverge manifests" prints whole:\n${lines.map((line) => `  ${line}`).join("\n")}`,
    { cause: thrown },
  );
}

/** As YAML takes it in one line. */
function textOf({ apiGroups, resources, resourceNames, verbs }: AccessRule): string {
  const list = (values: readonly string[]) =>
    `[${values.map((value) => (value === "" ? '""' : value)).join(", ")}]`;
  const names = resourceNames === undefined ? "" : ` resourceNames: ${list(resourceNames)},`;
  return `{ apiGroups: ${list(apiGroups)}, resources: ${list(resources)},${names} verbs: ${list(verbs)} }`;
}
