import type { AttemptRow } from "./attempt-row.ts";

/** A field manager and a field of an object: the number of conflicts lost to it, or of fields taken over from it. */
export interface ContentionPair {
  readonly kind: "conflict" | "takeover";
  readonly manager: string;
  readonly path: string;
  readonly count: number;
}

/** An object that the worker wrote to. */
interface NotedObject {
  /** {@link contentionObject} of the object. */
  readonly object: string;
  /** The cluster of the object, if it is another one than that of the worker. */
  readonly cluster?: string | undefined;
}

export interface ContentionNote extends NotedObject {
  /** Writes of this worker that conflicted. */
  readonly conflicts: number;
  readonly pairs: readonly ContentionPair[];
}

/** Writes of a controller to an object without a lasting effect. */
export interface WasteNote extends NotedObject {
  readonly controller: string;
  /** Minutes since 1970. */
  readonly minute: number;
  readonly writes: number;
}

export interface RollupNote {
  readonly controller: string;
  /** Minutes since 1970. */
  readonly minute: number;
  /** Increments by counter name. */
  readonly counts: Readonly<Record<string, number>>;
}

/** The notes of a worker since its last flush. */
export interface HistoryBatch {
  readonly rows: readonly { readonly row: AttemptRow; readonly recordBytes: number }[];
  readonly contention: readonly ContentionNote[];
  readonly wasted: readonly WasteNote[];
  readonly rollups: readonly RollupNote[];
  /** Reports to claim. A report is granted once per `reportAgainMs` in the fleet. */
  readonly reports: readonly string[];
  readonly reportAgainMs: number;
  /** Loop states by key; undefined ends a loop. */
  readonly loops: ReadonlyMap<string, string | undefined>;
}

export interface HistoryAnswer {
  /** For each pair of `contention`, its count in the current episode over all workers. */
  readonly episodes: readonly (NotedObject & {
    readonly pair: ContentionPair;
    readonly count: number;
  })[];
  /** The granted items of `reports`. */
  readonly granted: ReadonlySet<string>;
  /** Loop states of the whole fleet, by key. */
  readonly loops: ReadonlyMap<string, string>;
}
