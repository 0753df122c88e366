import type { Limits, WorkerRole } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type {
  ApprovalStore,
  DriftStore,
  HistoryWriter,
  RecordingStore,
  SourceStore,
  WorkQueue,
} from "@konverge/queue";
import type { Metrics, Tracing } from "@konverge/telemetry";
import type { Shutdown } from "./create-shutdown.ts";
import type { ReachableClusters } from "./access/attempt.ts";
import type { LoopWatch } from "./attempt/loop-watch.ts";
import type { ConflictRetry } from "./define/controller-options.ts";
import type { Controller } from "./define/define-controller.ts";
import type { NamespaceSelection } from "./define/namespace-selection.ts";
import type { Log } from "./define/log.ts";
import type { Middleware } from "./define/middleware.ts";
import type { RunStarter } from "./define/start-run.ts";
import type { ElectionSettings } from "./watch/start-leader.ts";

/** The systems that the engine uses. The caller opens and closes them, except for the queues. */
interface EngineConnections {
  readonly client: KubeClient;
  /** One queue per controller, of the same cluster as the client. Closed by the engine. */
  readonly queueFor: (controller: Controller) => WorkQueue;
  /** The object lanes of the cluster. */
  readonly lanes: ObjectLanes;
  /** Stores the history of attempts. Without it there is no search, no contention report and no loop protection. */
  readonly history?: HistoryWriter;
  /** The namespaces to watch. Default: all. */
  readonly namespaces?: NamespaceSelection;
  /** Stores the state of event sources. Required if a controller has one. */
  readonly sources?: SourceStore;
  /** Stores the plans that wait for users. Required if a controller has `approval`. */
  readonly approvals?: ApprovalStore;
  /** Stores the drift of objects. Required if a controller observes. */
  readonly drifts?: DriftStore;
  /** Stores the recordings of attempts. Default: none are made, whatever `record` of a controller is. */
  readonly recordings?: RecordingStore;
  /** Starts workflow runs for handlers; opened by the first use. Default: such calls are rejected. */
  readonly runs?: () => RunStarter;
  /** The other clusters that handlers can reach. Default: none; such calls are rejected. */
  readonly clusters?: ReachableClusters;
  /** Named limits for handlers. Default: none; their use is rejected. */
  readonly limits?: Limits;
}

/** How attempts run. */
interface AttemptSettings {
  /** Runs around the handlers of all controllers, outside their own middleware. */
  readonly use?: readonly Middleware[];
  /** For controllers that do not set it. Default `both`. */
  readonly conflictRetry?: ConflictRetry;
  /** Maximum of concurrent attempts per controller, whatever the controllers set; for a small process. */
  readonly concurrency?: number;
  /** Rate limit of the cluster in API calls per second; retries after failures get a fifth of it. Default: retries are not limited. */
  readonly ratePerSecond?: number;
  /** Subscribes to whether the API server may be called. Returns the function that unsubscribes. */
  readonly onWorkable?: (listener: (workable: boolean) => void) => () => void;
  /** Subscribes to whether attempts may begin in this Redis, or an operator must first accept it after a restore. */
  readonly onAccepted?: (listener: (isAccepted: boolean) => void) => () => void;
}

/** What the engine reports. */
interface EngineReports {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Traces attempts; from `loadTracing`. Default: no tracing, at no cost per call. */
  readonly tracing?: Tracing;
  /** Detects a blocked event loop; stopped by the engine. Default: one with a timer of its own. */
  readonly loop?: LoopWatch;
  /** Receives each 403 response to a watch or an election after startup. */
  readonly onForbidden?: (error: Error) => void;
}

export interface EngineOptions
  extends EngineConnections, AttemptSettings, EngineReports, ElectionSettings {
  readonly controllers: readonly Controller[];
  /** Unique per process; shown in records and Leases. */
  readonly workerId: string;
  /** Default `all`. */
  readonly role?: WorkerRole;
  /** The shutdown deadline, if shared with other parts of the process. Default: the engine has its own. */
  readonly release?: Shutdown;
  /** Ends the start, which waits for the first lists. */
  readonly signal?: AbortSignal;
}
