import type { WorkerRole } from "@konverge/core";

/** The properties of a controller that other processes need to make requests for it. */
export interface AnnouncedController {
  readonly name: string;
  readonly cluster: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural. */
  readonly resource: string;
  readonly scope: "Namespaced" | "Cluster";
  /** Its sources besides its watches; absent without any. */
  readonly sources?: readonly AnnouncedSource[];
  /** True if users must approve some of its plans. */
  readonly approval?: boolean;
  /** The service level objective: the share of changes that must be reconciled within the threshold. */
  readonly slo?: { readonly thresholdMs: number; readonly objective: number };
  /** True if it only plans. */
  readonly observes?: boolean;
}

/** A source of a controller besides its watches. */
export interface AnnouncedSource {
  readonly kind: "poll" | "stream" | "inbound";
  readonly name: string;
  /** Set for `inbound`: how the HTTP API receives its deliveries. */
  readonly inbound?: AnnouncedInbound;
}

/** How the HTTP API receives the deliveries of an inbound source. It has the secrets. */
export interface AnnouncedInbound {
  readonly verify: Verification;
  /** Header with the id of a delivery. */
  readonly deliveryHeader?: string;
  /** Further headers that `map` receives, in lower case. */
  readonly headers: readonly string[];
  /** How long repetitions are recognized, in ms. */
  readonly windowMs: number;
  readonly maxBodyKiB: number;
}

/** How a sender of deliveries is verified. */
export type Verification =
  | {
      readonly kind: "hmac";
      /** Header of the signature, in lower case. */
      readonly header: string;
      /** Precedes the signature in the header. */
      readonly prefix: string;
      readonly algorithm: "sha256" | "sha512";
      readonly encoding: "hex" | "base64";
      /** If set, the signed text is the value of this header, a dot and the body. The value is a time in s or ms, or RFC 3339. */
      readonly timestampHeader?: string;
      /** Largest difference between that time and the clock of Redis, in ms. */
      readonly toleranceMs: number;
    }
  | { readonly kind: "bearer" };

/** The properties of a workflow that other processes need to start runs of it. */
export interface AnnouncedWorkflow {
  readonly name: string;
  /** Version of the workflow's code. */
  readonly version: number;
  /** Name of the codec that encodes the values of its runs. */
  readonly codec?: string;
}

/** The version of a controller that a worker runs. */
export interface AnnouncedDefinition {
  /** The reconciled kind, for display. */
  readonly kind: string;
  /** Differs between versions. */
  readonly digest: string;
}

export interface AnnouncedWorker {
  /** True if it reads objects for the HTTP API. */
  readonly readsObjects?: boolean;
  /** True if it runs plans for the HTTP API. */
  readonly runsPlans?: boolean;
  readonly workerId: string;
  readonly controllers: readonly string[];
  /** By controller name. */
  readonly definitions: Readonly<Record<string, AnnouncedDefinition>>;
  /** Versions of the worker's workflows, by name; absent for workers of older versions. */
  readonly workflows?: Readonly<Record<string, number>>;
  /** Name of the codec of its workflows. */
  readonly codec?: string;
  /** Whether the worker makes requests, runs handlers, or both. */
  readonly role: WorkerRole;
  /** Version of Konverge. */
  readonly version: string;
  /** The newest format of data that the worker can use; absent for workers of older versions. */
  readonly format?: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly host: string;
  /** The caches of its watches; absent for workers of older versions. */
  readonly caches?: readonly AnnouncedCache[];
  /** Absent for workers of older versions. */
  readonly load?: AnnouncedLoad;
  /** Set while its clock differs from that of Redis by more than 2 s. */
  readonly clockSkew?: ClockSkew;
}

export interface ClockSkew {
  /** The clock of the worker minus that of Redis. */
  readonly aheadMs: number;
  /** By Redis's clock. */
  readonly sinceMs: number;
}

/** The load of a worker at its last heartbeat. */
export interface AnnouncedLoad {
  /** Running attempts and their upper bound, by controller. */
  readonly slots: Readonly<Record<string, { readonly running: number; readonly limit: number }>>;
  /** Resident memory of the process. */
  readonly memoryBytes: number;
  /** Upper bound of the JavaScript heap. */
  readonly heapLimitBytes: number;
  readonly heapBytes: number;
  /** 99th percentile of the delay of timers since the heartbeat before. */
  readonly eventLoopDelayMs: number;
  readonly calls: AnnouncedCalls;
  /** Ended attempts of the last minute; absent for workers of older versions. */
  readonly attemptsPerMinute?: number;
  /** Controllers whose watches it leads; absent for workers of older versions. */
  readonly leads?: readonly string[];
}

/** The calls of a worker to the API server of the cluster. */
export interface AnnouncedCalls {
  /** Admitted and deferred by the guard since the start of the worker. */
  readonly admitted: number;
  readonly deferred: number;
  /** Waiting for a token, by class. */
  readonly waiting: Readonly<Record<string, number>>;
  readonly inFlight: number;
}

/** The size of a worker's cache of a resource. */
export interface AnnouncedCache {
  /** `plural.group`. */
  readonly resource: string;
  readonly objects: number;
  /** As JSON, estimated. */
  readonly bytes: number;
}

/** A cluster that a worker serves or tries to serve. */
export interface ReportedCluster {
  readonly name: string;
  /** The source of the cluster, such as `directory clusters`. */
  readonly source: string;
  readonly state: "engaging" | "engaged" | "failing" | "disengaging";
  /** ISO 8601, the time of the last change of the state. */
  readonly since: string;
  /** The last error, without values of Secrets and credentials. */
  readonly reason?: string;
  /** Version of the API server. */
  readonly serverVersion?: string;
}

/** The clusters of a worker. */
export interface WorkerClusters {
  readonly workerId: string;
  readonly clusters: readonly ReportedCluster[];
}
