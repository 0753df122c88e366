import type { JsonObject, MutationOutcome, MutationState } from "@konverge/core";
import type { RequestClass } from "@konverge/queue";
import type { Changes, MutatedObject, Preconditions } from "../change/change.ts";

export interface NewMutation {
  /** Unique in the cluster; the same mutation may be submitted again with it. */
  readonly id: string;
  readonly object: MutatedObject;
  readonly changes: Changes;
  readonly subresource?: "status" | "scale";
  /** Another object of this name ends the mutation as `replaced`. */
  readonly uid?: string;
  readonly preconditions?: Preconditions;
  /** Creates a missing object from this content, or from nothing but its name, and then applies the change to it. */
  readonly createIfMissing?: JsonObject | true;
  /** Longest time from the submission to the write, in ms. */
  readonly deadlineMs?: number;
  /** Urgency. Mutations of one object keep their order. Default `interactive`. */
  readonly class?: RequestClass;
  /** For display: the caller. */
  readonly by?: string;
  /** True if Redis must not keep the values after the end. */
  readonly sensitive?: boolean;
}

export interface MutationError {
  readonly code: string;
  readonly message: string;
}

export interface MutationView extends NewMutation {
  readonly state: MutationState;
  readonly createdAtMs: number;
  readonly endedAtMs?: number;
  /** Of the object with the change: `applied` and `unchanged` only. */
  readonly resourceVersion?: string;
  /** For the other outcomes: the reason. */
  readonly error?: MutationError;
}

/**
 * `id_conflict`: the id was used for another mutation. `queue_full`: too many mutations of the object wait. `memory_full`: those
 * of the cluster that have not ended have too many bytes.
 */
export type Submitted =
  | { readonly id: string; readonly created: boolean }
  | { readonly id: string; readonly refused: "queue_full" | "memory_full" | "id_conflict" };

export interface MutationQuery {
  readonly object?: Pick<MutatedObject, "group" | "resource" | "namespace" | "name">;
  readonly state?: MutationState;
  /** 1 to 500. Default 50. */
  readonly limit?: number;
  /** From the previous page. */
  readonly cursor?: string;
}

export interface MutationPage {
  /** Newest first. */
  readonly mutations: readonly MutationView[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

export type CancelAnswer = "cancelled" | "applying" | "ended" | "missing";

/** The end of a mutation. */
export interface Verdict {
  readonly outcome: MutationOutcome;
  readonly resourceVersion?: string;
  readonly error?: MutationError;
}

/** The mutations of a cluster, as all its workers count them. */
export interface MutationCounts {
  /** Since the first one. */
  readonly accepted: number;
  /** Those that have not ended. */
  readonly waiting: number;
  /** Since the first one. */
  readonly ended: Readonly<Record<MutationOutcome, number>>;
}

/** Longest queue of waiting mutations of one object. */
export const MAX_WAITING = 10_000;
/** Most bytes of the mutations of a cluster that have not ended. */
export const MAX_WAITING_BYTES = 268_435_456;
/** Most mutations that are applied by one write. */
export const MAX_BATCH = 64;
/** Most bytes of the mutations of one write, besides the first one. */
export const MAX_BATCH_BYTES = 524_288;
