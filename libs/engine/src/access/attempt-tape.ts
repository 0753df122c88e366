import type { Discovery, EventRecorder, CallHold } from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { RunState } from "../define/start-run.ts";
import type { PlannedRun } from "./attempt-plan.ts";
import type { FreshReads } from "./fresh-reads.ts";

/**
 * Everything that an attempt reads and does passes through its tape: a recorder keeps it, and a replay answers it. Live attempts have
 * none.
 */
export interface AttemptTape {
  /** Passes the calls to a cluster. */
  in(cluster: string): CallHold;
  /** The kinds that the attempt asks for by name. Shared kinds would be read by another attempt. */
  readonly discovery: Discovery;
  lanes(cluster: string, lanes: ObjectLanes): ObjectLanes;
  freshReads(reads: FreshReads): FreshReads;
  /** Passes a call outside of the API server. */
  outside<T>(name: string, call: () => T | Promise<T>): Promise<T>;
  /** Passes the start of a workflow run. */
  start(run: PlannedRun, call: () => Promise<RunState>): Promise<RunState>;
  recorder(events: EventRecorder): EventRecorder;
}
