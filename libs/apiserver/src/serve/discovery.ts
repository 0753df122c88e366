import { formatApiVersion, type JsonObject } from "@konverge/core";
import type { ResourceKind, Subresource } from "../kinds/resource-kind.ts";
import { REVIEWS } from "./reviews.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** `/api`: the versions of the core group. */
export const coreVersions = (address: string): JsonObject => ({
  kind: "APIVersions",
  versions: ["v1"],
  serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
});

/** `/apis`: all groups. */
export function groupList(kinds: readonly ResourceKind[]): JsonObject {
  const groups = [...new Set([...kinds, ...REVIEWS].map(({ group }) => group))].filter(
    (group) => group !== "",
  );
  return {
    kind: "APIGroupList",
    apiVersion: "v1",
    groups: groups.flatMap((group) => {
      const found = groupOf(kinds, group);
      return found === undefined ? [] : [found];
    }),
  };
}

/** `/apis/<group>`; undefined if the group is not served. */
export function apiGroup(kinds: readonly ResourceKind[], group: string): JsonObject | undefined {
  const found = groupOf(kinds, group);
  return found === undefined ? undefined : { kind: "APIGroup", apiVersion: "v1", ...found };
}

function groupOf(kinds: readonly ResourceKind[], group: string): JsonObject | undefined {
  const versions = [
    ...new Set(
      [...kinds, ...REVIEWS].filter((one) => one.group === group).map(({ version }) => version),
    ),
  ]
    .toSorted(byVersionPriority)
    .map((version) => ({ groupVersion: `${group}/${version}`, version }));
  const [preferred] = versions;
  return preferred === undefined
    ? undefined
    : { name: group, versions, preferredVersion: { ...preferred } };
}

/** `/api/v1` or `/apis/<group>/<version>`; undefined if the version is not served. */
export function resourceList(
  kinds: readonly ResourceKind[],
  group: string,
  version: string,
): JsonObject | undefined {
  const served = kinds.filter((kind) => kind.group === group && kind.version === version);
  const reviews = REVIEWS.filter((one) => one.group === group && one.version === version);
  if (served.length + reviews.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: formatApiVersion(group, version),
    resources: [
      ...served.flatMap((kind) => [
        mainResource(kind),
        ...[...kind.subresources].map((one) => subresource(kind, one)),
      ]),
      ...reviews.map(({ resource, singular, kind }) => ({
        name: resource,
        singularName: singular,
        namespaced: false,
        kind,
        verbs: ["create"],
      })),
    ],
  };
}

function mainResource(kind: ResourceKind): JsonObject {
  return {
    name: kind.resource,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs:
      kind.resource === "namespaces" ? VERBS.filter((verb) => verb !== "deletecollection") : VERBS,
    ...(kind.shortNames.length === 0 ? {} : { shortNames: [...kind.shortNames] }),
    ...(kind.categories.length === 0 ? {} : { categories: [...kind.categories] }),
  };
}

function subresource(kind: ResourceKind, name: Subresource): JsonObject {
  const shared = {
    name: `${kind.resource}/${name}`,
    singularName: "",
    namespaced: kind.namespaced,
  };
  if (name === "scale") {
    const scale = { group: "autoscaling", version: "v1", kind: "Scale" };
    return { ...shared, ...scale, verbs: ["get", "patch", "update"] };
  }
  if (name === "eviction") {
    const eviction = { group: "policy", version: "v1", kind: "Eviction" };
    return { ...shared, ...eviction, verbs: ["create"] };
  }
  const verbs = name === "finalize" ? ["update"] : ["get", "patch", "update"];
  return { ...shared, kind: kind.kind, verbs };
}

const VERSION = /^v(\d+)(?:(alpha|beta)(\d+)?)?$/;

/** Orders stable before beta before alpha, newer before older, and other versions last by name. */
function byVersionPriority(left: string, right: string): number {
  const [a, b] = [rank(left), rank(right)];
  for (const [index, value] of a.entries()) {
    const difference = (b[index] ?? 0) - value;
    if (difference !== 0) return difference;
  }
  return left < right ? -1 : 1;
}

function rank(version: string): readonly number[] {
  const match = VERSION.exec(version);
  if (match === null) return [0, 0, 0];
  const stage = match[2] === undefined ? 3 : match[2] === "beta" ? 2 : 1;
  return [stage, Number(match[1]), Number(match[3] ?? 0)];
}
