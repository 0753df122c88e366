import { defined, ensureError, isKonvergeError, KonvergeError, sleepMs } from "@konverge/core";
import {
  isForbidden,
  startLeaderElection,
  type LeaderElection,
  type LeaderElectionOptions,
} from "@konverge/kube";
import type { ClusterAccess } from "../define/cluster-access.ts";
import { parseKindKey } from "../store/wait-names.ts";
import { KindWatch, type KindWatchOptions } from "./kind-watch.ts";
import type { WaitIndex } from "./wait-index.ts";

/** Interval in which the awaited kinds are read, in ms. One Redis call per process. */
const CHECK_EVERY_MS = 1_000;
/** How long a watch continues after the last waiting run, in ms; the next wait often begins soon. */
const LINGER_MS = 60_000;

/** Settings of the election: the holder of a Lease in the home cluster watches for all workers. */
export interface WaitWatcherSettings extends Pick<
  LeaderElectionOptions,
  "namespace" | "name" | "identity" | "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs"
> {
  readonly clusters: ClusterAccess;
}

export interface WaitWatcherOptions extends WaitWatcherSettings {
  readonly index: WaitIndex;
  readonly wake: KindWatchOptions["wake"];
  readonly onError: (error: Error) => void;
}

export interface WaitWatcher {
  /** Stops the watches and releases the Lease; the signal aborts the release. @throws as the election's stop */
  stop(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

/**
 * Keeps one watch for each kind that runs wait for, in the process that holds the Lease. Without waiting runs it only reads one
 * set of Redis per second, and takes part in no election.
 */
export function startWaitWatcher(options: WaitWatcherOptions): WaitWatcher {
  return new ElectedWaitWatcher(options);
}

class ElectedWaitWatcher implements WaitWatcher {
  readonly #options: WaitWatcherOptions;
  readonly #stopping = new AbortController();
  readonly #watches = new Map<string, { readonly watch: KindWatch; neededAtMs: number }>();
  readonly #running: Promise<void>;
  #election: LeaderElection | undefined;
  #neededAtMs = -Infinity;
  #isLeading = false;
  #isRedisDown = false;
  #reportedForbidden = false;
  #checkNow = (): void => undefined;

  constructor(options: WaitWatcherOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  async stop(options?: { readonly signal?: AbortSignal }): Promise<void> {
    this.#stopping.abort(new Error("the watcher is stopped"));
    await this.#running;
    await this.#end([...this.#watches.keys()]);
    await this.#election?.stop(options);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#check().catch((thrown: unknown) => {
        // Once per outage of Redis, not every second.
        if (!this.#isRedisDown) this.#options.onError(ensureError(thrown));
        this.#isRedisDown = true;
      });
      const early = new AbortController();
      this.#checkNow = () => early.abort();
      await sleepMs(CHECK_EVERY_MS, AbortSignal.any([signal, early.signal])).catch(() => undefined);
    }
  }

  async #check(): Promise<void> {
    const kinds = await this.#options.index.kinds();
    this.#isRedisDown = false;
    const nowMs = performance.now();
    if (kinds.length > 0) this.#neededAtMs = nowMs;
    if (nowMs - this.#neededAtMs > LINGER_MS) {
      await this.#end([...this.#watches.keys()]);
      const over = this.#election;
      // Cleared first, so that a failed release does not prevent the next election.
      this.#election = undefined;
      await over?.stop();
      return;
    }
    this.#election ??= await this.#elect();
    if (this.#isLeading) await this.#follow(kinds, nowMs);
    else await this.#end([...this.#watches.keys()]);
  }

  async #elect(): Promise<LeaderElection> {
    const { clusters, namespace, name, identity } = this.#options;
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = this.#options;
    return startLeaderElection({
      client: (await clusters.client(clusters.home)).scoped({ priority: "critical" }),
      namespace,
      name,
      identity,
      ...defined({ leaseDurationMs, renewDeadlineMs, retryPeriodMs }),
      onStartedLeading: (signal) => {
        this.#isLeading = true;
        this.#reportedForbidden = false;
        this.#checkNow();
        signal.addEventListener("abort", () => {
          this.#isLeading = false;
        });
      },
      onError: (error) => this.#report(error),
    });
  }

  #report(error: Error): void {
    const { namespace, name, onError } = this.#options;
    // The guard reports deferred calls once.
    if (isKonvergeError(error) && error.code === "deferred") return;
    if (!isForbidden(error)) return onError(error);
    if (this.#reportedForbidden) return;
    this.#reportedForbidden = true;
    const message =
      `the Lease ${namespace}/${name} cannot be acquired: ${error.message}; this worker watches nothing for workflows, and runs that ` +
      'wait for objects are rechecked every 30 s. Apply the roles that "konverge manifests" prints';
    onError(new KonvergeError("forbidden", message, { cause: error }));
  }

  /** Starts the watches of the given kinds, and stops those that were not needed for a while. */
  async #follow(kinds: readonly string[], nowMs: number): Promise<void> {
    const { clusters, index, wake, onError } = this.#options;
    for (const kind of kinds) {
      const known = this.#watches.get(kind);
      if (known !== undefined) {
        known.neededAtMs = nowMs;
        continue;
      }
      const { cluster } = parseKindKey(kind);
      const client = () => clusters.client(cluster);
      const namespaces = clusters.namespaces?.(cluster);
      const watch = new KindWatch({ kind, client, namespaces, index, wake, onError });
      this.#watches.set(kind, { watch, neededAtMs: nowMs });
    }
    const over = [...this.#watches].filter(([, watch]) => nowMs - watch.neededAtMs > LINGER_MS);
    await this.#end(over.map(([kind]) => kind));
  }

  async #end(kinds: readonly string[]): Promise<void> {
    const ended = kinds.map(async (kind) => {
      const known = this.#watches.get(kind);
      this.#watches.delete(kind);
      await known?.watch.stop();
    });
    await Promise.all(ended);
  }
}
