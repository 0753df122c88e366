/** Where the runs of one workflow are in Redis. All workflows of a cluster share one hash tag, so a script may touch several runs. */
export interface RunNames {
  /** What the names of runs begin with; the run's id follows. */
  readonly runRoot: string;
  readonly run: (id: string) => string;
  readonly steps: (id: string) => string;
  readonly signals: (id: string) => string;
  /** Ids of the signals that a run ever got. */
  readonly seen: (id: string) => string;
  /** Text: id of the run that holds a key. */
  readonly holder: (key: string) => string;
  /** Sorted sets of ids: by when somebody should look whether they went on, by creation, by end. */
  readonly wakes: string;
  readonly index: string;
  readonly ended: string;
  /** What the names of the sets by status begin with; the status follows. Sorted by creation. */
  readonly statuses: string;
  /** Set of ids whose cancellation was ordered and not thrown yet. */
  readonly cancelling: string;
  /** Sorted set of ids: when a run that waits for objects is looked at all the same. */
  readonly rechecks: string;
  /** There while a sweep has answered such runs a moment ago. */
  readonly recheckGap: string;
  /** Of all workflows: what the index of a kind's objects begins with, and the set of the kinds. */
  readonly waitRoot: string;
  readonly waitKinds: string;
  /** Text that is made at random once, for all workflows of the cluster. */
  readonly installation: string;
  /** Hash of the cluster: how its schedules stand. */
  readonly schedules: string;
}

/**
 * `<prefix>:{<cluster>/workflows}/...`: beside the queues, whose tags are `{<cluster>}` and `{<cluster>/<number>}`; no script
 * touches both.
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
    seen: of("seen"),
    holder: of("holder"),
    wakes: `${root}/wakes/${workflow}`,
    index: `${root}/index/${workflow}`,
    ended: `${root}/ended/${workflow}`,
    statuses: `${root}/status/${workflow}/`,
    cancelling: `${root}/cancelling/${workflow}`,
    rechecks: `${root}/rechecks/${workflow}`,
    recheckGap: `${root}/recheckGap/${workflow}`,
    waitRoot: `${root}/waits/`,
    waitKinds: `${root}/waitKinds`,
    installation: `${root}/installation`,
    schedules: `${root}/schedules`,
  };
}
