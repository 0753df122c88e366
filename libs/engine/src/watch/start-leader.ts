import {
  compareResourceVersions,
  defined,
  ensureError,
  isKonvergeError,
  resourceId,
  type Trigger,
} from "@konverge/core";
import {
  isForbidden,
  startLeaderElection,
  type KubeClient,
  type LeaderElection,
  type LeaderElectionOptions,
} from "@konverge/kube";
import { Namespace } from "@konverge/kube/kinds";
import type { SourceStore, WorkQueue } from "@konverge/queue";
import type { SourceMetrics } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { runSources } from "../sources/run-sources.ts";
import { leaseName } from "./lease-name.ts";
import { createLeaderProgress, type LeaderProgress } from "./leader-progress.ts";
import type { Reached } from "./missed-changes.ts";
import { requestVanished } from "./request-vanished.ts";
import { runResync } from "./resync.ts";
import type { Reflectors, Watcher } from "./start-reflectors.ts";

/** A controller in a process that can lead its watches. */
export interface Leader extends Watcher {
  readonly queue: WorkQueue;
  leading: boolean;
  /** Fires when all objects must be enqueued again. */
  readonly again: RepeatedSignal;
}

/** Can fire repeatedly; each time it resolves all current waiters. */
export interface RepeatedSignal {
  fire(reason: string): void;
  /** Never resolves once `signal` is aborted. */
  next(signal: AbortSignal): Promise<string>;
}

export function createRepeatedSignal(): RepeatedSignal {
  const waiting = new Set<(reason: string) => void>();
  return {
    fire(reason) {
      for (const resolve of waiting) resolve(reason);
      waiting.clear();
    },
    next: (signal) =>
      new Promise((resolve) => {
        waiting.add(resolve);
        signal.addEventListener("abort", () => waiting.delete(resolve), { once: true });
      }),
  };
}

/** How leadership is elected. */
export interface ElectionSettings {
  /** Separates installations on one cluster, which must not share Leases. Default `konverge`. */
  readonly installation?: string;
  /** Namespace of the leaders' Leases. Default `default`. */
  readonly leaseNamespace?: string;
  /**
   * A digest per controller of its definition and code. A new leader with the digest of the last one requests only what the last
   * one has not requested. Default: none; a new leader enqueues every object.
   */
  readonly builds?: Readonly<Record<string, string>>;
  /** Time between two writes of a leader's progress, in ms. Default 5 s. A longer one makes the next leader repeat more requests. */
  readonly progressEveryMs?: number;
  readonly election?: Pick<
    LeaderElectionOptions,
    "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs"
  >;
}

export interface StartLeaderOptions extends ElectionSettings {
  readonly client: KubeClient;
  readonly reflectors: Reflectors;
  /** Identity in the Lease. */
  readonly workerId: string;
  readonly log: Log;
  readonly onForbidden?: (error: Error) => void;
  readonly sources?: SourceStore;
  readonly metrics: SourceMetrics;
}

/** Takes part in the election; as leader, enqueues all known objects, and then what the watches see. */
export function startLeader(part: Leader, options: StartLeaderOptions): LeaderElection {
  const { controller } = part;
  const { client, workerId, leaseNamespace, installation, election, onForbidden } = options;
  const log = options.log.child({ controller: controller.name });
  const progress = progressOf(part, options, log);
  const follow = () =>
    progress?.follow().catch((error: unknown) => {
      log.debug({ err: ensureError(error) }, "progress of the leader not read");
    });
  void follow();
  return startLeaderElection({
    client: client.scoped({ priority: "critical" }),
    namespace: leaseNamespace ?? "default",
    name: leaseName(installation ?? "konverge", controller.name),
    identity: workerId,
    ...election,
    onStartedLeading: (leading) => {
      log.info({}, "leadership acquired");
      part.leading = true;
      leading.addEventListener("abort", () => {
        part.leading = false;
        log.info({}, "leadership ended");
        void follow();
      });
      resyncWhile(leading, part, { reflectors: options.reflectors, log, progress });
      followSources(leading, part, options, log);
    },
    onError: (error) => {
      // The guard reports once that no call is possible.
      const level = isKonvergeError(error) && error.code === "deferred" ? "debug" : "warn";
      log[level]({ err: error }, "leader election attempt failed");
      if (isForbidden(error)) onForbidden?.(error);
    },
  });
}

function followSources(
  signal: AbortSignal,
  { controller, queue }: Leader,
  { sources: store, metrics, workerId }: StartLeaderOptions,
  log: Log,
): void {
  if (store === undefined || controller.eventSources.length === 0) return;
  runSources({ controller, queue, store, metrics, log, workerId, signal }).catch(
    (error: unknown) => {
      if (!signal.aborted) log.error({ err: ensureError(error) }, "sources stopped");
    },
  );
}

/** Without a build, a new leader enqueues every object. */
function progressOf(
  { controller, queue, missed }: Leader,
  { builds, progressEveryMs, reflectors }: StartLeaderOptions,
  log: Log,
): LeaderProgress | undefined {
  const build = builds?.[controller.name];
  if (build === undefined) return undefined;
  const groups = controller.sources.map((source) => reflectors.groupOf(source));
  return createLeaderProgress({
    queue,
    missed,
    build,
    reached(): Reached | undefined {
      const versions = groups.map(({ lastVersion }) => lastVersion);
      // A namespace that enters the scope brings objects that are older than the version.
      const isKnown = groups.every(({ isFollowing }) => !isFollowing);
      return isKnown && versions.every((version) => version !== undefined) ? versions : undefined;
    },
    onError: (error) => log.debug({ err: error }, "progress of the leader not stored"),
    ...defined({ everyMs: progressEveryMs }),
  });
}

/**
 * Requests what the last leader has not requested. If that is not known, enqueues all of the store, because it has the changes
 * made without a leader. Then enqueues all of it at the resync interval.
 */
function resyncWhile(
  leading: AbortSignal,
  { controller, source, queue, again }: Leader,
  {
    reflectors,
    log,
    progress,
  }: {
    readonly reflectors: Reflectors;
    readonly log: Log;
    readonly progress: LeaderProgress | undefined;
  },
): void {
  const store = reflectors.groupOf(controller.sources[0]);
  const seenFor = (namespace: string | undefined) => seenBy(controller, reflectors, namespace);
  runResync({
    controller,
    store,
    source,
    seen: seenFor,
    incarnation: () => queue.incarnation(),
    progress,
    signal: leading,
    onError: (error) => log.warn({ err: error }, "resync failed, retrying"),
    sweep: () =>
      requestVanished({
        controller,
        store,
        isListed: (namespace) => store.isListed(namespace),
        seen: seenFor,
        queue,
        signal: leading,
        onError: (error) => log.warn({ err: error }, "search for deleted objects failed"),
      }),
    onLost: () => log.warn({}, "possible Redis data loss, full resync started"),
    again: (signal) => again.next(signal),
  }).catch((error: unknown) => {
    if (!leading.aborted) log.error({ err: ensureError(error) }, "resync stopped");
  });
}

/**
 * A child that was deleted without a leader shows only by its absence, so the reader's cache must have seen the deletion. If
 * several watches of a kind exist, it may be that of the newest.
 */
export function seenBy(
  { sources }: Pick<Controller, "sources">,
  reflectors: Pick<Reflectors, "groupOf" | "namespaceVersion">,
  namespace: string | undefined,
): NonNullable<Trigger["seen"]> {
  const seen: Record<string, string> = {};
  const { namespaceVersion } = reflectors;
  if (namespaceVersion !== undefined) seen[resourceId(Namespace)] = namespaceVersion;
  for (const source of sources) {
    if (source.option === "for") continue;
    const group = reflectors.groupOf(source);
    const version = group.versionIn(namespace);
    if (version === undefined) continue;
    const other = seen[group.id];
    const isNewest = other === undefined || (compareResourceVersions(version, other) ?? 0) > 0;
    if (isNewest) seen[group.id] = version;
  }
  return seen;
}
