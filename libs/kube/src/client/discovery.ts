import {
  formatApiVersion,
  isJsonObject,
  isKonvergeError,
  KonvergeError,
  parseApiVersion,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { BUILT_IN_GROUPS } from "../names/built-in-groups.ts";
import { isNotFound } from "../errors/error-predicates.ts";
import { isKubeApiError } from "../errors/kube-api-error.ts";
import type { DiscoveredResource, Discovery, FetchResources } from "../contract/discovery.ts";

export function createDiscovery(): Discovery {
  const known = new Map<string, Promise<readonly DiscoveredResource[]>>();

  const load = (
    apiVersion: string,
    fetch: FetchResources,
  ): Promise<readonly DiscoveredResource[]> => {
    const loading = fetch(apiVersion).then((list) => toResources(list, apiVersion));
    known.set(apiVersion, loading);
    // Failures are not cached; the caller receives the error.
    loading.catch(() => {
      if (known.get(apiVersion) === loading) known.delete(apiVersion);
    });
    return loading;
  };
  /** Joins the call of another scope, but not in its abort. */
  const join = async (
    apiVersion: string,
    fetch: FetchResources,
  ): Promise<readonly DiscoveredResource[]> => {
    const remembered = known.get(apiVersion);
    if (remembered === undefined) return await load(apiVersion, fetch);
    try {
      return await remembered;
    } catch (error) {
      if (isFailureOfServer(error)) throw error;
      return await join(apiVersion, fetch);
    }
  };
  return {
    discover: join,
    async resolveType(apiVersion, kind, fetch) {
      try {
        const isRemembered = known.has(apiVersion);
        let found = await find(join(apiVersion, fetch), kind);
        // The kind may have been installed since; only a fresh response proves that it is missing.
        if (isRemembered) found ??= await find(load(apiVersion, fetch), kind);
        if (found !== undefined) return found;
      } catch (error) {
        if (isNotFound(error)) throw notServed(apiVersion, kind, error);
        throw error;
      }
      throw notServed(apiVersion, kind);
    },
    forget: (group, version) => {
      known.delete(formatApiVersion(group, version));
    },
  };
}

/** True for a failure of the call itself, which would meet every caller. */
function isFailureOfServer(error: unknown): boolean {
  if (isKubeApiError(error)) return true;
  return isKonvergeError(error) && ["kube_unreachable", "kube_timeout"].includes(error.code);
}

async function find(
  resources: Promise<readonly DiscoveredResource[]>,
  kind: string,
): Promise<DiscoveredResource | undefined> {
  return (await resources).find((resource) => resource.kind === kind);
}

function notServed(apiVersion: string, kind: string, cause?: unknown): KonvergeError {
  const fix = BUILT_IN_GROUPS.has(parseApiVersion(apiVersion).group)
    ? "check both; the embedded API server serves the kinds of konverge/kinds only"
    : "check both, or install its CRD";
  return new KonvergeError(
    "not_found",
    `the cluster does not serve ${kind} in ${apiVersion}; ${fix}`,
    cause === undefined ? {} : { cause },
  );
}

function toResources(list: JsonValue, apiVersion: string): readonly DiscoveredResource[] {
  const slash = apiVersion.indexOf("/");
  const group = slash === -1 ? "" : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  const rows =
    isJsonObject(list) && Array.isArray(list["resources"])
      ? list["resources"].filter(isJsonObject)
      : [];
  const subresources = new Map<string, string[]>();
  for (const row of rows) {
    const [parent = "", subresource] = text(row, "name").split("/");
    if (subresource !== undefined)
      subresources.set(parent, [...(subresources.get(parent) ?? []), subresource]);
  }
  return rows
    .filter((row) => !text(row, "name").includes("/"))
    .map((row) => ({
      group,
      version,
      kind: text(row, "kind"),
      resource: text(row, "name"),
      scope: row["namespaced"] === true ? "Namespaced" : "Cluster",
      singular: text(row, "singularName"),
      shortNames: texts(row, "shortNames"),
      verbs: texts(row, "verbs"),
      subresources: subresources.get(text(row, "name")) ?? [],
    }));
}

function text(row: JsonObject, field: string): string {
  const value = row[field];
  return typeof value === "string" ? value : "";
}

function texts(row: JsonObject, field: string): string[] {
  const value = row[field];
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
}
