import {
  defined,
  CLASSIC_GUARD_LIMITS,
  findGuardLimitIssues,
  findInFlightIssue,
  type ErrorIssue,
  type GuardLimits,
} from "@konverge/core";
import { isKubeConfig, type KubeConfigObject, type KubeCredentialsOptions } from "@konverge/kube";
import { findShardsIssue } from "@konverge/queue";

/** The address and the limits of one cluster. */
export interface ClusterOptions {
  /**
   * Path of a kubeconfig, or a loaded `KubeConfig` of `@kubernetes/client-node`. Default: `KUBECONFIG`, `~/.kube/config`, or the
   * pod's service account.
   */
  readonly kubeconfig?: string | KubeConfigObject;
  readonly context?: string;
  /** API calls per second of all workers, 0.001 to 100000. Default 500. Too low causes a backlog; too high causes rejections by the server. */
  readonly rate?: number;
  /** Additional API calls of all workers in any window. Default twice the rate. Too low loses rate, because tokens expire after 100 ms. */
  readonly burst?: number;
  /** Lower limit of the rate that errors reduce. Default a fiftieth of the rate, at least 1. */
  readonly minRate?: number;
  /** Concurrent API calls and connections per process. Default 64. Too low leaves the rate unused. */
  readonly maxInFlight?: number;
  /**
   * The namespaces that workers may access, for accounts with Roles only. Default: all. The setting `namespaces` takes precedence
   * for the worker's own cluster.
   */
  readonly namespaces?: readonly string[];
  /** Shards of its queues, 1 to 64. Default 1. Cannot be changed while there is work: docs/configuration.md. */
  readonly shards?: number;
}

/** 10 calls per second with a burst of 20, a common setting of controllers in Go: `clusters: { default: CONSERVATIVE_RATE }`. */
export const CONSERVATIVE_RATE: Required<Pick<ClusterOptions, "rate" | "burst" | "minRate">> = {
  rate: CLASSIC_GUARD_LIMITS.ratePerSecond,
  burst: CLASSIC_GUARD_LIMITS.burst,
  minRate: CLASSIC_GUARD_LIMITS.minRatePerSecond,
};

/** The namespaces that a worker may access. Undefined: all. */
export function namespacesOf(
  settings: { readonly namespaces?: readonly string[] | undefined },
  cluster: Pick<ClusterOptions, "namespaces"> | undefined,
): readonly string[] | undefined {
  return settings.namespaces ?? cluster?.namespaces;
}

/** A table, so that a new option without an entry does not compile. */
const KNOWN: Readonly<Record<keyof ClusterOptions, true>> = {
  kubeconfig: true,
  context: true,
  rate: true,
  burst: true,
  minRate: true,
  maxInFlight: true,
  namespaces: true,
  shards: true,
};

/** The configuration names of the guard's limits. Its other limits are not configurable here. */
const WRITTEN_AS: Readonly<Partial<Record<string, keyof ClusterOptions>>> = {
  "/ratePerSecond": "rate",
  "/burst": "burst",
  "/minRatePerSecond": "minRate",
};

/** The limits of a cluster, for its guard. */
export function clusterLimits({ rate, burst, minRate }: ClusterOptions): Partial<GuardLimits> {
  return {
    ...defined({ ratePerSecond: rate, burst, minRatePerSecond: minRate }),
  };
}

/** The source of the credentials of a cluster's `kubeconfig`. */
export function credentialsFrom(kubeconfig: ClusterOptions["kubeconfig"]): KubeCredentialsOptions {
  if (kubeconfig === undefined) return {};
  return typeof kubeconfig === "string"
    ? { kubeconfigPath: kubeconfig }
    : { kubeConfig: kubeconfig };
}

/** Returns all problems of the clusters of a configuration, by their configuration names. */
export function findClusterIssues(clusters: unknown): ErrorIssue[] {
  if (typeof clusters !== "object" || clusters === null || Object.keys(clusters).length === 0) {
    const detail = "clusters: must have at least one cluster; omit it for one named default";
    return [{ pointer: "/clusters", detail }];
  }
  return Object.entries(clusters).flatMap(([name, cluster]) => findIssues(name, cluster));
}

function findIssues(name: string, cluster: unknown): ErrorIssue[] {
  const issue = (option: string, detail: string) => ({
    pointer: `/clusters/${pointerPart(name)}${option === "" ? "" : `/${pointerPart(option)}`}`,
    detail: `clusters.${name}${option === "" ? "" : `.${option}`}: ${detail}`,
  });
  if (typeof cluster !== "object" || cluster === null) {
    return [issue("", "must be an object; use {} for the defaults")];
  }
  const options = cluster as ClusterOptions;
  const { kubeconfig } = options;
  const hasKubeconfig =
    kubeconfig === undefined || typeof kubeconfig === "string" || isKubeConfig(kubeconfig);
  const inFlight =
    options.maxInFlight === undefined ? undefined : findInFlightIssue(options.maxInFlight);
  const shards = options.shards === undefined ? undefined : findShardsIssue(options.shards);
  return [
    ...(name === "" ? [issue("", "the name is empty; set a name")] : []),
    ...Object.keys(options)
      .filter((option) => !Object.hasOwn(KNOWN, option))
      .map((option) =>
        issue(option, `is unknown; valid options: ${Object.keys(KNOWN).join(", ")}`),
      ),
    ...findGuardLimitIssues(clusterLimits(options)).map(({ pointer, detail }) =>
      issue(WRITTEN_AS[pointer] ?? pointer.slice(1), detail),
    ),
    ...(hasKubeconfig
      ? []
      : [issue("kubeconfig", "must be a path, or a KubeConfig of @kubernetes/client-node")]),
    ...(inFlight === undefined ? [] : [issue("maxInFlight", inFlight)]),
    ...(shards === undefined ? [] : [issue("shards", shards)]),
    ...(isNamespaces(options.namespaces)
      ? []
      : [issue("namespaces", "must be a list of names of namespaces; omit it for all")]),
  ];
}

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

function isNamespaces(value: unknown): boolean {
  if (value === undefined) return true;
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((name) => typeof name === "string" && NAMESPACE.test(name))
  );
}

function pointerPart(text: string): string {
  return text.replaceAll("~", "~0").replaceAll("/", "~1");
}
