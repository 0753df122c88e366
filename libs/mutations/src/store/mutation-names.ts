/** Redis names of one cluster's mutations. All share one hash tag, so a script may access several objects. */
export interface MutationNames {
  /** Prefix of all names. */
  readonly root: string;
  readonly mutation: (id: string) => string;
  /** Sorted set of the ids of an object that no worker has taken, by number. */
  readonly waiting: (object: string) => string;
  /** Hash of the object's batch, its holder and its plans. */
  readonly lane: (object: string) => string;
  /** Sorted set of an object's mutations by number. */
  readonly of: (object: string) => string;
  /** Number of the last mutation. */
  readonly sequence: string;
  /** Sorted sets of ids: by number, by end, by deadline. */
  readonly index: string;
  readonly ended: string;
  readonly deadlines: string;
  /** Sorted set of objects with mutations that have not ended, by the time of the next check. */
  readonly objects: string;
  /** Bytes of the mutations that have not ended; absent for 0. */
  readonly bytes: string;
  /** Hash of the number of ended mutations by outcome, since the first one. */
  readonly outcomes: string;
  /** Hash of the open kinds. */
  readonly kinds: string;
  /** Channel with the ids of ended mutations. */
  readonly settled: string;
}

/** Returns the names `<prefix>:{<cluster>/mutations}/...`. No queue or workflow has this tag. */
export function mutationNames(prefix: string, cluster: string): MutationNames {
  const root = `${prefix}:{${encodeURIComponent(cluster)}/mutations}`;
  return {
    root,
    mutation: (id) => `${root}/mutation/${id}`,
    waiting: (object) => `${root}/waiting/${object}`,
    lane: (object) => `${root}/lane/${object}`,
    of: (object) => `${root}/of/${object}`,
    sequence: `${root}/sequence`,
    index: `${root}/index`,
    ended: `${root}/ended`,
    deadlines: `${root}/deadlines`,
    objects: `${root}/objects`,
    bytes: `${root}/bytes`,
    outcomes: `${root}/outcomes`,
    kinds: `${root}/kinds`,
    settled: `${root}/settled`,
  };
}
