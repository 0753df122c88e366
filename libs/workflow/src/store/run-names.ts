import { workflowOf } from "../define/run-ref.ts";
import type { EndingKey } from "./scripts/end-run.ts";

/** Redis names of one workflow's runs. All workflows of a cluster share one hash tag, so a script may access several runs. */
export interface RunNames {
  /** Prefix of the names of runs. */
  readonly runRoot: string;
  readonly run: (id: string) => string;
  readonly steps: (id: string) => string;
  /** Hash of the unconsumed signals, and sorted set of their names. */
  readonly signals: (id: string) => string;
  readonly signalNames: (id: string) => string;
  /** List of the last refused signals. */
  readonly refusals: (id: string) => string;
  /** Hash of answered updates by id, and list of the ids of those that were refused or are of an earlier round. */
  readonly answers: (id: string) => string;
  readonly answeredIds: (id: string) => string;
  /** List of the last log lines. */
  readonly logs: (id: string) => string;
  /** Sorted set of the ids of the last signals that a run has received. */
  readonly seen: (id: string) => string;
  /** Text: id of the run that holds a key. */
  readonly holder: (key: string) => string;
  /** Hash: the end of the last run of a key that was for an object. */
  readonly last: (key: string) => string;
  /** Sorted set of keys with such a hash: the next check for the object. */
  readonly lastChecks: string;
  /** Prefix of the names of these hashes. */
  readonly lastRoot: string;
  /** Sorted sets of ids: by the time of the next check for a lost wake-up, by creation, by end. */
  readonly wakes: string;
  readonly index: string;
  readonly ended: string;
  /** Prefix of the sets by status (`done`) and by label (`label/region=eu`), sorted by creation, of the hash `labels`, and of the slots of runs. */
  readonly statuses: string;
  /** Hash by id: the requested cancellation (JSON) that was not thrown yet. */
  readonly cancelling: string;
  /** Hash by id: the epoch below which executions of a terminated run must stop; until the run is claimed. */
  readonly fences: string;
  /** Sorted set of ids with lease and step, by the time from which the step's body counts as silent. */
  readonly silent: string;
  /** Prefix of the names of steps. */
  readonly stepsRoot: string;
  /** Sorted set of ids: the next recheck of a run that waits for objects. */
  readonly rechecks: string;
  /** Exists for a moment after a sweep has returned such runs. */
  readonly recheckGap: string;
  /** For all workflows: prefix of the indexes of waits by kind, and the set of the kinds. */
  readonly waitRoot: string;
  readonly waitKinds: string;
  /** Hash by worker: the time of its last announcement, and the version of its code. */
  readonly codes: string;
  /** Random id of this Redis, for all workflows of the cluster. */
  readonly installation: string;
  /** Hashes of the cluster's schedules, and of their pauses by name. */
  readonly schedules: string;
  readonly schedulePauses: string;
}

/**
 * Returns the names `<prefix>:{<cluster>/workflows}/...`. The queues have the tags `{<cluster>}` and `{<cluster>/<number>}`; no
 * script accesses both.
 */
export function runNames(prefix: string, cluster: string, workflow: string): RunNames {
  const root = `${prefix}:{${encodeURIComponent(cluster)}/workflows}`;
  const of = (what: string) => {
    const names = `${root}/${what}/${workflow}/`;
    return (id: string) => names + id;
  };
  return {
    runRoot: `${root}/run/${workflow}/`,
    run: of("run"),
    steps: of("steps"),
    signals: of("signals"),
    signalNames: of("signalNames"),
    refusals: of("refusals"),
    answers: of("answers"),
    answeredIds: of("answeredIds"),
    logs: of("logs"),
    seen: of("seen"),
    holder: of("holder"),
    last: of("last"),
    lastChecks: `${root}/lastChecks/${workflow}`,
    lastRoot: `${root}/last/${workflow}/`,
    wakes: `${root}/wakes/${workflow}`,
    index: `${root}/index/${workflow}`,
    ended: `${root}/ended/${workflow}`,
    statuses: `${root}/status/${workflow}/`,
    cancelling: `${root}/cancels/${workflow}`,
    fences: `${root}/fences/${workflow}`,
    silent: `${root}/silent/${workflow}`,
    stepsRoot: `${root}/steps/${workflow}/`,
    rechecks: `${root}/rechecks/${workflow}`,
    recheckGap: `${root}/recheckGap/${workflow}`,
    codes: `${root}/codes/${workflowOf(workflow)}`,
    waitRoot: `${root}/waits/`,
    waitKinds: `${root}/waitKinds`,
    installation: `${root}/installation`,
    schedules: `${root}/schedules`,
    schedulePauses: `${root}/schedulePauses`,
  };
}

/** Returns the names that a script needs to end a run. */
export function endingKeys(
  names: RunNames,
  id: string,
  key = "",
): Readonly<Record<EndingKey, string>> {
  return {
    run: names.run(id),
    steps: names.steps(id),
    signals: names.signals(id),
    signalNames: names.signalNames(id),
    seen: names.seen(id),
    refusals: names.refusals(id),
    wakes: names.wakes,
    endedRuns: names.ended,
    cancelling: names.cancelling,
    holder: names.holder(key),
    index: names.index,
    waitKinds: names.waitKinds,
    rechecks: names.rechecks,
    last: names.last(key),
    lastChecks: names.lastChecks,
  };
}
