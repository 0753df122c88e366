import type { ApiObject, JsonObject, KonvergeError, ResourceType } from "@konverge/core";
import {
  createAttemptSecrets,
  type AttemptSecrets,
  type CallRecord,
  type ConflictRecord,
  type NamespacedName,
} from "@konverge/kube";
import type { AttemptSpan } from "@konverge/telemetry";
import { AttemptLog } from "./attempt-log.ts";

/** A write that changed an object. */
export interface WriteTrace {
  readonly verb: "create" | "update" | "patch" | "apply" | "delete";
  readonly type: ResourceType;
  readonly name: NamespacedName;
  readonly subresource?: string;
  /** Default: that of the controller. */
  readonly fieldManager?: string;
  readonly fromVersion?: string;
  /** The object after the write; before it for a delete. */
  readonly object: ApiObject;
  /** The object before a patch. */
  readonly before?: ApiObject;
  /** True if its content must not be exposed (P12). */
  readonly sensitive?: boolean;
  /** The applied merge patch. */
  readonly patch?: JsonObject;
}

/** The calls, writes and conflicts of one attempt, collected while it runs. */
export interface AttemptTrace {
  readonly calls: { count: number; durationMs: number; rateLimitMs: number };
  /** Wait in object lanes, in ms. */
  readonly laneMs: number;
  readonly writes: readonly WriteTrace[];
  readonly conflicts: readonly ConflictRecord[];
  /** The first deferral by the gate, even if the handler caught it. */
  readonly deferred: KonvergeError | undefined;
  /** Values that it read in sensitive objects. */
  readonly secrets: AttemptSecrets;
  /** The lines of the handler's log. */
  readonly log: AttemptLog;
  readonly noteLane: (waitedMs: number) => void;
  readonly noteCall: (call: CallRecord) => void;
  readonly noteConflict: (conflict: ConflictRecord) => void;
  readonly noteWrite: (write: WriteTrace) => void;
  /** Runs that it started or found. */
  readonly runs: readonly { readonly id: string; readonly created: boolean }[];
  readonly noteRun: (run: { readonly id: string; readonly created: boolean }) => void;
  readonly noteDeferred: (error: KonvergeError) => void;
  /** The writes and conflicts in other clusters, by the cluster's name. */
  readonly remotes: ReadonlyMap<string, AttemptTrace>;
  /** Returns the trace of another cluster. Calls and waits are those of the attempt. */
  readonly remote: (cluster: string) => AttemptTrace;
}

/** Limits the memory of a handler in a loop; further entries count only in `calls`. */
const MAX_KEPT = 100;
const MAX_RUNS = 10;

/** @param keepLog stores the log of a running attempt */
export function createAttemptTrace(
  span?: AttemptSpan,
  keepLog?: (lines: string) => Promise<void>,
): AttemptTrace {
  const secrets = createAttemptSecrets();
  const calls = { count: 0, durationMs: 0, rateLimitMs: 0 };
  const runs: { readonly id: string; readonly created: boolean }[] = [];
  const remotes = new Map<string, AttemptTrace>();
  let deferred: KonvergeError | undefined;
  let laneMs = 0;
  const trace: AttemptTrace = {
    calls,
    get laneMs() {
      return laneMs;
    },
    noteLane: (waitedMs) => {
      laneMs += waitedMs;
      span?.noteLane(waitedMs);
    },
    ...createChangeNotes(span),
    secrets,
    log: new AttemptLog({ secrets, keep: keepLog }),
    get deferred() {
      return deferred;
    },
    noteCall: ({ durationMs, waitedMs }) => {
      calls.count += 1;
      calls.durationMs += durationMs;
      calls.rateLimitMs += waitedMs;
    },
    runs,
    noteRun: (run) => {
      if (runs.length < MAX_RUNS) runs.push(run);
    },
    noteDeferred: (error) => {
      deferred ??= error;
    },
    remotes,
    remote(cluster) {
      const remote = remotes.get(cluster) ?? createRemoteTrace(trace, span);
      remotes.set(cluster, remote);
      return remote;
    },
  };
  return trace;
}

/**
 * Returns the trace of calls to another cluster. Writes and conflicts are separate, because objects of two clusters may have
 * the same name.
 */
function createRemoteTrace(attempt: AttemptTrace, span: AttemptSpan | undefined): AttemptTrace {
  const { calls, secrets, log, runs, noteLane, noteCall, noteRun, noteDeferred } = attempt;
  return {
    calls,
    secrets,
    log,
    runs,
    noteLane,
    noteCall,
    noteRun,
    noteDeferred,
    get laneMs() {
      return attempt.laneMs;
    },
    get deferred() {
      return attempt.deferred;
    },
    ...createChangeNotes(span),
    remotes: attempt.remotes,
    remote: attempt.remote,
  };
}

/** The writes and conflicts in one cluster. */
function createChangeNotes(
  span: AttemptSpan | undefined,
): Pick<AttemptTrace, "writes" | "conflicts" | "noteWrite" | "noteConflict"> {
  const writes: WriteTrace[] = [];
  const conflicts: ConflictRecord[] = [];
  return {
    writes,
    conflicts,
    noteWrite: (write) => {
      if (writes.length < MAX_KEPT) writes.push(write);
    },
    noteConflict: (conflict) => {
      if (conflicts.length >= MAX_KEPT) return;
      conflicts.push(conflict);
      span?.noteConflict(conflict);
    },
  };
}
