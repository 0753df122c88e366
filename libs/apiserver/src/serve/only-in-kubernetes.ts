import type { ResourcePath } from "./request-path.ts";

const GROUPS: ReadonlySet<string> = new Set([
  "admissionregistration.k8s.io",
  "apiregistration.k8s.io",
  "authentication.k8s.io",
  "certificates.k8s.io",
  "discovery.k8s.io",
  "flowcontrol.apiserver.k8s.io",
  "node.k8s.io",
  "resource.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
  "storagemigration.k8s.io",
]);
const CORE: ReadonlySet<string> = new Set([
  "bindings",
  "componentstatuses",
  "endpoints",
  "limitranges",
  "podtemplates",
  "replicationcontrollers",
  "resourcequotas",
]);
const SUBRESOURCES: ReadonlySet<string> = new Set([
  "attach",
  "binding",
  "ephemeralcontainers",
  "exec",
  "log",
  "portforward",
  "proxy",
  "resize",
  "token",
]);

/** Returns true for a resource of kube-apiserver that the embedded server does not have. */
export function isOnlyInKubernetes({ group, resource, subresource }: ResourcePath): boolean {
  if (GROUPS.has(group)) return true;
  if (group === "apps" && resource === "controllerrevisions") return true;
  return group === "" && (CORE.has(resource) || SUBRESOURCES.has(subresource));
}
