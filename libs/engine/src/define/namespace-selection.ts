import { parseLabelSelector } from "@konverge/kube";

/** Namespaces by name, or by a label selector of their Namespace objects, which is followed at run time. */
export type NamespaceSelection = readonly string[] | { readonly labels: string };

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export function isByLabels(
  selection: NamespaceSelection | undefined,
): selection is { readonly labels: string } {
  return selection !== undefined && !Array.isArray(selection);
}

/** Returns the names of a selection; undefined for one by labels. */
export function namesIn(selection: NamespaceSelection | undefined): readonly string[] | undefined {
  return isByLabels(selection) ? undefined : selection;
}

/** Returns the problem of a value that should be a selection of namespaces. */
export function findNamespacesIssue(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    if (value.length === 0) return "must have at least one namespace; omit it for all";
    const wrong = value.findIndex((one) => typeof one !== "string" || !NAMESPACE.test(one));
    return wrong < 0 ? undefined : `entry ${wrong} must be the name of a namespace`;
  }
  const { labels, ...others } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const isSelector =
    typeof labels === "string" && labels !== "" && parseLabelSelector(labels) !== undefined;
  if (isSelector && Object.keys(others).length === 0) return undefined;
  return 'must be a list of names, or { labels } with a label selector such as "team=shop"';
}
