import type { KubeClient } from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { QueueWorker, ScanOptions } from "@konverge/queue";
import type { OpenKind } from "./change/open-kind.ts";
import type {
  CancelAnswer,
  MutationCounts,
  MutationPage,
  MutationQuery,
  MutationView,
  NewMutation,
  Submitted,
} from "./store/mutation-store.ts";
import type { MutationObserver } from "./worker/mutation-observer.ts";

/** The mutations of one cluster. All calls throw a KonvergeError `redis_unavailable` after 1 s without Redis. */
export interface Mutations {
  /** Stores up to 1,000 mutations, in order, and requests their objects. Returns one result per mutation. */
  submit(mutations: readonly NewMutation[]): Promise<readonly Submitted[]>;
  /** In the order of the ids. */
  get(ids: readonly string[]): Promise<readonly (MutationView | undefined)[]>;
  list(query?: MutationQuery, options?: ScanOptions): Promise<MutationPage>;
  /** Cancels a mutation that waits. */
  cancel(id: string, by?: string): Promise<CancelAnswer>;
  /**
   * Resolves when the mutation has ended. @throws the reason of `signal`; KonvergeError `not_found` for an unknown id
   */
  settled(id: string, signal: AbortSignal): Promise<MutationView>;
  counts(): Promise<MutationCounts>;
  /** The kinds that the configuration of the workers allows, by kind and group. */
  openKinds(): Promise<readonly OpenKind[]>;
  /** Applies mutations in this process. */
  work(settings: MutationWorkerSettings): QueueWorker;
  close(): Promise<void>;
}

export interface MutationWorkerSettings {
  readonly client: KubeClient;
  readonly lanes: ObjectLanes;
  /** The kinds that mutations may change. The worker announces them. */
  readonly kinds: readonly OpenKind[];
  /** Objects that are changed at the same time by this process. Default 16. */
  readonly concurrency?: number;
  /** Unique per process. */
  readonly workerId: string;
  /** Interval in which lost requests are repeated, in ms. Default 5 s. */
  readonly sweepEveryMs?: number;
  /** Resolves with false while a restored Redis is held. Then no mutation expires or is forgotten. */
  readonly mayStart?: () => Promise<boolean>;
  readonly observer?: MutationObserver;
}
