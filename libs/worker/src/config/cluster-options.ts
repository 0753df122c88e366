import {
  defined,
  CLASSIC_GUARD_LIMITS,
  findGuardLimitIssues,
  findInFlightIssue,
  type ErrorIssue,
  type GuardLimits,
} from "@konverge/core";
import { findShardsIssue } from "@konverge/queue";

/** Where one cluster is and how hard it may be driven. */
export interface ClusterOptions {
  /** Path of a kubeconfig. Default: `KUBECONFIG`, `~/.kube/config`, or the pod's own account. */
  readonly kubeconfig?: string;
  readonly context?: string;
  /** API calls per second of the whole fleet, 0.001 to 100000. Default 500. Too low makes a backlog; too high leaves it to the server to refuse. */
  readonly rate?: number;
  /** API calls of the whole fleet on top of that, in any window. Default twice the rate. Too low loses rate, as tokens live 100 ms. */
  readonly burst?: number;
  /** Trouble cuts the rate, but not below this. Default a fiftieth of the rate, at least 1. */
  readonly minRate?: number;
  /** API calls at once per process, and its connections. Default 64. Too few leave the rate unused. */
  readonly maxInFlight?: number;
  /** Parts over which the keys of its queues are spread, 1 to 64. Default 1. Cannot be changed while there is work: docs/configuration.md. */
  readonly shards?: number;
}

/** The 10 calls per second with a burst of 20 that controllers in Go have long been given: `clusters: { default: CONSERVATIVE_RATE }`. */
export const CONSERVATIVE_RATE: Required<Pick<ClusterOptions, "rate" | "burst" | "minRate">> = {
  rate: CLASSIC_GUARD_LIMITS.ratePerSecond,
  burst: CLASSIC_GUARD_LIMITS.burst,
  minRate: CLASSIC_GUARD_LIMITS.minRatePerSecond,
};

/** A table, so that a new option cannot be forgotten here. */
const KNOWN: Readonly<Record<keyof ClusterOptions, true>> = {
  kubeconfig: true,
  context: true,
  rate: true,
  burst: true,
  minRate: true,
  maxInFlight: true,
  shards: true,
};

/** The guard's names in the words of a configuration. The rest of its limits cannot be configured here. */
const WRITTEN_AS: Readonly<Partial<Record<string, keyof ClusterOptions>>> = {
  "/ratePerSecond": "rate",
  "/burst": "burst",
  "/minRatePerSecond": "minRate",
};

/** What the guard of a cluster is to allow. */
export function clusterLimits({ rate, burst, minRate }: ClusterOptions): Partial<GuardLimits> {
  return {
    ...defined({ ratePerSecond: rate, burst, minRatePerSecond: minRate }),
  };
}

/** Everything that is wrong with the clusters of a configuration, by the names that were written. */
export function findClusterIssues(clusters: unknown): ErrorIssue[] {
  if (typeof clusters !== "object" || clusters === null || Object.keys(clusters).length === 0) {
    const detail = "clusters: write at least one, or leave it out for one named default";
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
    return [issue("", "write an object, {} for the defaults")];
  }
  const options = cluster as ClusterOptions;
  const inFlight =
    options.maxInFlight === undefined ? undefined : findInFlightIssue(options.maxInFlight);
  const shards = options.shards === undefined ? undefined : findShardsIssue(options.shards);
  return [
    ...(name === "" ? [issue("", "the name is empty; give one")] : []),
    ...Object.keys(options)
      .filter((option) => !Object.hasOwn(KNOWN, option))
      .map((option) => issue(option, `is not known; known are ${Object.keys(KNOWN).join(", ")}`)),
    ...findGuardLimitIssues(clusterLimits(options)).map(({ pointer, detail }) =>
      issue(WRITTEN_AS[pointer] ?? pointer.slice(1), detail),
    ),
    ...(inFlight === undefined ? [] : [issue("maxInFlight", inFlight)]),
    ...(shards === undefined ? [] : [issue("shards", shards)]),
  ];
}

function pointerPart(text: string): string {
  return text.replaceAll("~", "~0").replaceAll("/", "~1");
}
