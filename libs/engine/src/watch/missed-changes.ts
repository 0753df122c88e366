import { compareResourceVersions } from "@konverge/core";

/** The versions that the watches of a controller's sources have reached, in the order of the sources. */
export type Reached = readonly (string | undefined)[];

interface Missed {
  readonly source: number;
  readonly version: string;
  readonly request: () => void;
}

/** Changes kept per controller. Each keeps its object. A leader is replaced within seconds, so these suffice for 100 per second. */
const MOST = 2_000;

/**
 * The changes that a process sees while another one leads. When it becomes the leader, it requests those that the last leader
 * has not requested.
 */
export class MissedChanges {
  /** For each source: all later changes are kept. Undefined before the first list. */
  #since: (string | undefined)[] | undefined;
  #changes: Missed[] = [];

  /** Begins to keep changes. @param reached of the watches, whose first lists are complete */
  begin(reached: Reached): void {
    this.#since = [...reached];
    this.#changes = [];
  }

  /** Ends it, and drops the changes. */
  end(): void {
    this.#since = undefined;
    this.#changes = [];
  }

  /** @param request enqueues what the change concerns */
  add(source: number, version: string, request: () => void): void {
    if (this.#since === undefined) return;
    this.#changes.push({ source, version, request });
    const dropped = this.#changes.length > MOST ? this.#changes.shift() : undefined;
    if (dropped !== undefined) this.#since[dropped.source] = dropped.version;
  }

  /**
   * Returns the requests for all changes after these versions, oldest first. Undefined if some of them are not known: the
   * process began later, dropped changes, or versions cannot be compared.
   */
  after(reached: Reached): (() => void)[] | undefined {
    const since = this.#since;
    if (since === undefined || since.length !== reached.length) return undefined;
    const isCovered = since.every((version, source) => isUpTo(version, reached[source]) === true);
    if (!isCovered) return undefined;
    return this.#changes
      .filter(({ source, version }) => isUpTo(version, reached[source]) !== true)
      .map(({ request }) => request);
  }
}

/** Undefined if the versions cannot be compared. */
function isUpTo(version: string | undefined, limit: string | undefined): boolean | undefined {
  if (version === undefined || limit === undefined) return undefined;
  const order = compareResourceVersions(version, limit);
  return order === undefined ? undefined : order <= 0;
}
