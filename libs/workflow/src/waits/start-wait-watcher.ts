import { defined, ensureError, isKonvergeError, KonvergeError, sleepMs } from "@konverge/core";
import {
  isForbidden,
  startLeaderElection,
  type LeaderElection,
  type LeaderElectionOptions,
} from "@konverge/kube";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { WaitIndex } from "./wait-index.ts";
import { parseKindKey } from "../store/wait-names.ts";
import { watchKind, type KindWatchOptions } from "./watch-kind.ts";

/** How soon a kind is watched for which the first run waits, in ms. One read of Redis per process. */
const LOOK_EVERY_MS = 1_000;
/** How long a watch outlives the last run that waited, in ms: the next one often comes soon. */
const LINGER_MS = 60_000;

/** Who watches for all: the holder of a Lease in the home cluster. */
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
  /** Ends the watches and gives the Lease back. @throws as the election's stop; the signal ends the call that it waits for */
  stop(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

/**
 * Keeps one watch for each kind that runs wait for, in the one process that holds the Lease. While nobody waits it reads one set of
 * Redis a second, and neither stands for election nor watches.
 */
export function startWaitWatcher(options: WaitWatcherOptions): WaitWatcher {
  const { index, clusters, wake, onError } = options;
  const stopping = new AbortController();
  const watches = new Map<string, { readonly stop: () => Promise<void>; neededAtMs: number }>();
  let election: LeaderElection | undefined;
  let neededAtMs = -Infinity;
  let leading = false;
  let isRedisAway = false;
  let toldForbidden = false;
  let wakeUp = (): void => undefined;

  const stand = async () => {
    const { namespace, name, identity } = options;
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = options;
    election = startLeaderElection({
      client: (await clusters.client(clusters.home)).scoped({ priority: "critical" }),
      namespace,
      name,
      identity,
      ...defined({ leaseDurationMs, renewDeadlineMs, retryPeriodMs }),
      onStartedLeading(signal) {
        leading = true;
        toldForbidden = false;
        wakeUp();
        signal.addEventListener("abort", () => {
          leading = false;
        });
      },
      onError: report,
    });
  };
  const report = (error: Error) => {
    // That nothing may be sent is told by the guard, once.
    if (isKonvergeError(error) && error.code === "deferred") return;
    if (!isForbidden(error)) return onError(error);
    if (toldForbidden) return;
    toldForbidden = true;
    const { namespace, name } = options;
    const message =
      `the Lease ${namespace}/${name} cannot be taken: ${error.message}; nothing is watched for workflows from here, and runs that wait for objects ` +
      'are looked at every 30 s. Apply the roles that "konverge manifests" prints';
    onError(new KonvergeError("forbidden", message, { cause: error }));
  };
  const end = async (kinds: readonly string[]) => {
    const ended = kinds.map(async (kind) => {
      const watch = watches.get(kind);
      watches.delete(kind);
      await watch?.stop();
    });
    await Promise.all(ended);
  };
  /** Makes the watches those of the kinds that are needed, or were a moment ago. */
  const follow = async (kinds: readonly string[], nowMs: number) => {
    for (const kind of kinds) {
      const known = watches.get(kind);
      if (known !== undefined) {
        known.neededAtMs = nowMs;
        continue;
      }
      const client = () => clusters.client(parseKindKey(kind).cluster);
      const watch = watchKind({ kind, client, index, wake, onError });
      watches.set(kind, { stop: () => watch.stop(), neededAtMs: nowMs });
    }
    const over = [...watches].filter(([, watch]) => nowMs - watch.neededAtMs > LINGER_MS);
    await end(over.map(([kind]) => kind));
  };
  const look = async () => {
    const kinds = await index.kinds();
    isRedisAway = false;
    const nowMs = performance.now();
    if (kinds.length > 0) neededAtMs = nowMs;
    if (nowMs - neededAtMs > LINGER_MS) {
      await end([...watches.keys()]);
      const over = election;
      // First: with one that cannot give its Lease back, nobody could stand again.
      election = undefined;
      await over?.stop();
      return;
    }
    if (election === undefined) await stand();
    if (leading) await follow(kinds, nowMs);
    else await end([...watches.keys()]);
  };
  const run = async () => {
    while (!stopping.signal.aborted) {
      await look().catch((thrown: unknown) => {
        // Once for each time that Redis is away: this asks every second.
        if (!isRedisAway) onError(ensureError(thrown));
        isRedisAway = true;
      });
      const early = new AbortController();
      wakeUp = () => early.abort();
      await sleepMs(LOOK_EVERY_MS, AbortSignal.any([stopping.signal, early.signal])).catch(
        () => undefined,
      );
    }
  };
  const running = run();

  return {
    async stop(stopOptions) {
      stopping.abort(new Error("the watcher is stopped"));
      await running;
      await end([...watches.keys()]);
      await election?.stop(stopOptions);
    },
  };
}
