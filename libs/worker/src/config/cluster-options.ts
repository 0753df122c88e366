import {
  defined,
  CLASSIC_GUARD_LIMITS,
  findGuardLimitIssues,
  findInFlightIssue,
  toMs,
  ensureError,
  type BreakerLimits,
  type Duration,
  type ErrorIssue,
  type GuardLimitsInput,
} from "@konverge/core";
import { findNamespacesIssue, type NamespaceSelection } from "@konverge/engine";
import { isKubeConfig, type KubeConfigObject, type KubeCredentialsOptions } from "@konverge/kube";
import { findShardsIssue } from "@konverge/queue";
import { findClusterLabelIssues } from "./cluster-labels.ts";

/**
 * The thresholds and open times of the circuit breaker that all workers of a cluster share. If workers start with different
 * values, those of the last one apply to the shared breaker.
 */
export interface BreakerOptions {
  /**
   * Failed calls in a row that open the breaker, 1 to 1000. Default 12. A worker also pauses itself after this number. Too low
   * stops all calls for a short disturbance; too high keeps sending calls to a server that is down.
   */
  readonly failures?: number;
  /**
   * Calls within the last seconds from which shares are judged, 1 to 10000. Default 20. Too low lets single failures of a quiet
   * fleet open the breaker; too high leaves it to `failures`.
   */
  readonly calls?: number;
  /**
   * Share of failed calls that opens the breaker, 0.01 to 1. Default 0.5. Too low stops all calls although most succeed; too high
   * adds load to a failing server.
   */
  readonly failedShare?: number;
  /**
   * First open time, 100 ms to 5 m. Default 1 s, at most `openMax`. Doubles with each opening up to `openMax`, with a jitter of
   * 25 %. Too short probes a restarting server often; too long delays the work after a short outage.
   */
  readonly openMin?: Duration;
  /**
   * Longest open time, 100 ms to 5 m. Default 5 s, at least `openMin`. One probe of all workers is sent after it, so a long time
   * saves few calls and delays the recovery.
   */
  readonly openMax?: Duration;
}

/** The address and the limits of one cluster. */
export interface ClusterOptions {
  /**
   * Path of a kubeconfig, or a loaded `KubeConfig` of `@kubernetes/client-node`. Default: `KUBECONFIG`, `~/.kube/config`, or the
   * pod's service account.
   */
  readonly kubeconfig?: string | KubeConfigObject;
  /** Context of the kubeconfig. Default: its current context. */
  readonly context?: string;
  /** API calls per second of all workers, 0.001 to 100000. Default 500. Too low causes a backlog; too high causes rejections by the server. */
  readonly rate?: number;
  /** Additional API calls of all workers in any window. Default twice the rate. Too low loses rate, because tokens expire after 100 ms. */
  readonly burst?: number;
  /** Lower limit of the rate that errors reduce. Default a fiftieth of the rate, at least 1. */
  readonly minRate?: number;
  /** When the circuit breaker opens, and for how long. */
  readonly breaker?: BreakerOptions;
  /** Concurrent API calls and connections per process. Default 64. Too low leaves the rate unused. */
  readonly maxInFlight?: number;
  /**
   * The namespaces that workers watch: names, for accounts with Roles only, or `{ labels: "team=shop" }` for the namespaces that
   * match a label selector, followed while the worker runs. Default: all. The setting `namespaces` takes precedence for the
   * worker's own cluster.
   */
  readonly namespaces?: NamespaceSelection;
  /** Shards of its queues, 1 to 64. Default 1. Cannot be changed while there is work: docs/configuration.md. */
  readonly shards?: number;
  /** Labels of the cluster, which `clusters` of a controller selects. Default: none. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** 10 calls per second with a burst of 20, a common setting of controllers in Go: `clusters: { default: CONSERVATIVE_RATE }`. */
export const CONSERVATIVE_RATE: Required<Pick<ClusterOptions, "rate" | "burst" | "minRate">> = {
  rate: CLASSIC_GUARD_LIMITS.ratePerSecond,
  burst: CLASSIC_GUARD_LIMITS.burst,
  minRate: CLASSIC_GUARD_LIMITS.minRatePerSecond,
};

/** The namespaces that a worker watches. Undefined: all. */
export function namespacesOf(
  settings: { readonly namespaces?: readonly string[] | undefined },
  cluster: Pick<ClusterOptions, "namespaces"> | undefined,
): NamespaceSelection | undefined {
  return settings.namespaces ?? cluster?.namespaces;
}

/** A table, so that a new option without an entry does not compile. */
const KNOWN: Readonly<Record<keyof ClusterOptions, true>> = {
  kubeconfig: true,
  context: true,
  rate: true,
  burst: true,
  minRate: true,
  breaker: true,
  maxInFlight: true,
  namespaces: true,
  shards: true,
  labels: true,
};

/** The configuration names of the guard's limits. Its other limits are not configurable here. */
const WRITTEN_AS: Readonly<Partial<Record<string, string>>> = {
  "/ratePerSecond": "rate",
  "/burst": "burst",
  "/minRatePerSecond": "minRate",
  "/breaker/openMs": "breaker/openMin",
  "/breaker/maxOpenMs": "breaker/openMax",
};

/** A table, so that a new option without an entry does not compile. */
const BREAKER_KNOWN: Readonly<Record<keyof BreakerOptions, true>> = {
  failures: true,
  calls: true,
  failedShare: true,
  openMin: true,
  openMax: true,
};

/** The limits of a cluster, for its guard. */
export function clusterLimits({ rate, burst, minRate, breaker }: ClusterOptions): GuardLimitsInput {
  return {
    ...defined({ ratePerSecond: rate, burst, minRatePerSecond: minRate }),
    ...(breaker === undefined ? {} : { breaker: breakerLimitsOf(breaker) }),
  };
}

function breakerLimitsOf(options: BreakerOptions): Partial<BreakerLimits> {
  const { failures, calls, failedShare, openMin, openMax } = options;
  return defined({
    failures,
    calls,
    failedShare,
    openMs: openMin === undefined ? undefined : toMs(openMin, "openMin"),
    maxOpenMs: openMax === undefined ? undefined : toMs(openMax, "openMax"),
  });
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
    pointer: `/clusters/${pointerPart(name)}${option === "" ? "" : `/${option.split("/").map(pointerPart).join("/")}`}`,
    detail: `clusters.${name}${option === "" ? "" : `.${option.replaceAll("/", ".")}`}: ${detail}`,
  });
  if (typeof cluster !== "object" || cluster === null || Array.isArray(cluster)) {
    return [issue("", "must be an object; use {} for the defaults")];
  }
  const options = cluster as ClusterOptions;
  const { kubeconfig } = options;
  const hasKubeconfig =
    kubeconfig === undefined || typeof kubeconfig === "string" || isKubeConfig(kubeconfig);
  const inFlight =
    options.maxInFlight === undefined ? undefined : findInFlightIssue(options.maxInFlight);
  const inNamespaces =
    options.namespaces === undefined ? undefined : findNamespacesIssue(options.namespaces);
  const shards = options.shards === undefined ? undefined : findShardsIssue(options.shards);
  return [
    ...(name === "" ? [issue("", "the name is empty; set a name")] : []),
    ...Object.keys(options)
      .filter((option) => !Object.hasOwn(KNOWN, option))
      .map((option) =>
        issue(option, `is unknown; valid options: ${Object.keys(KNOWN).join(", ")}`),
      ),
    ...findBreakerOptionIssues(options.breaker).map(([option, detail]) => issue(option, detail)),
    ...findGuardLimitIssues(checkableLimits(options)).map(({ pointer, detail }) =>
      issue(WRITTEN_AS[pointer] ?? pointer.slice(1), detail),
    ),
    ...(hasKubeconfig
      ? []
      : [issue("kubeconfig", "must be a path, or a KubeConfig of @kubernetes/client-node")]),
    ...(inFlight === undefined ? [] : [issue("maxInFlight", inFlight)]),
    ...(shards === undefined ? [] : [issue("shards", shards)]),
    ...(inNamespaces === undefined ? [] : [issue("namespaces", inNamespaces)]),
    ...findClusterLabelIssues(options.labels).map(([label, detail]) =>
      labelIssue(issue("labels", detail), label),
    ),
  ];
}

/** A label name can have dots and slashes, so it is quoted. */
function labelIssue(issue: ErrorIssue, label: string | undefined): ErrorIssue {
  if (label === undefined) return issue;
  return {
    pointer: `${issue.pointer}/${pointerPart(label)}`,
    detail: issue.detail.replace(".labels:", `.labels: "${label}"`),
  };
}

/** Returns the errors that a range check cannot find: unknown options, and times that are no durations. */
function findBreakerOptionIssues(breaker: unknown): (readonly [option: string, detail: string])[] {
  if (breaker === undefined) return [];
  if (typeof breaker !== "object" || breaker === null || Array.isArray(breaker)) {
    return [["breaker", "must be an object such as { failures: 12 }; omit it for the defaults"]];
  }
  const unknown = Object.keys(breaker).filter((option) => !Object.hasOwn(BREAKER_KNOWN, option));
  return [
    ...unknown.map((option): readonly [string, string] => [
      `breaker/${option}`,
      `is unknown; valid options: ${Object.keys(BREAKER_KNOWN).join(", ")}`,
    ]),
    ...(["openMin", "openMax"] as const).flatMap((option) => {
      const detail = findDurationIssue((breaker as BreakerOptions)[option]);
      return detail === undefined ? [] : [[`breaker/${option}`, detail] as const];
    }),
  ];
}

function findDurationIssue(value: Duration | undefined): string | undefined {
  if (value === undefined) return undefined;
  try {
    toMs(value, "the value");
    return undefined;
  } catch (error) {
    return ensureError(error).message;
  }
}

/** The limits without a breaker that has invalid options: their consequences are not reported. */
function checkableLimits({ breaker, ...options }: ClusterOptions): GuardLimitsInput {
  const isSound = breaker !== undefined && findBreakerOptionIssues(breaker).length === 0;
  return clusterLimits({ ...options, ...(isSound ? { breaker } : {}) });
}

function pointerPart(text: string): string {
  return text.replaceAll("~", "~0").replaceAll("/", "~1");
}
