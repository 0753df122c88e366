import { ensureError, isKonvergeError, type Trigger } from "@konverge/core";
import { isForbidden, startLeaderElection, type LeaderElection } from "@konverge/kube";
import type { WorkQueue } from "@konverge/queue";
import { leaseName } from "./lease-name.ts";
import type { Controller } from "../define/define-controller.ts";
import type { EngineOptions } from "../engine.ts";
import { typeId } from "../access/object-cache.ts";
import { runResync } from "./resync.ts";
import type { Reflectors, Watcher } from "./start-reflectors.ts";

/** A controller in a process that may be elected to make its requests. */
export interface Leader extends Watcher {
  readonly queue: WorkQueue;
  leading: boolean;
  /** Waits for somebody to ask that everything be requested again. */
  readonly again: RepeatedSignal;
}

/** Tells those that wait for it, each time anew. */
export interface RepeatedSignal {
  fire(reason: string): void;
  /** Never resolves once `signal` is aborted. */
  next(signal: AbortSignal): Promise<string>;
}

export function createRepeatedSignal(): RepeatedSignal {
  const waiting = new Set<(reason: string) => void>();
  return {
    fire(reason) {
      for (const tell of waiting) tell(reason);
      waiting.clear();
    },
    next: (signal) =>
      new Promise((resolve) => {
        waiting.add(resolve);
        signal.addEventListener("abort", () => waiting.delete(resolve), { once: true });
      }),
  };
}

/** Stands for election; once elected, requests everything there is, and from then on what the watches see. */
export function startLeader(
  part: Leader,
  reflectors: Reflectors,
  options: EngineOptions,
): LeaderElection {
  const { controller, source, queue } = part;
  const log = options.log.child({ controller: controller.name });
  return startLeaderElection({
    client: options.client.scoped({ priority: "critical" }),
    namespace: options.leaseNamespace ?? "default",
    name: leaseName(options.installation ?? "konverge", controller.name),
    identity: options.workerId,
    ...options.election,
    onStartedLeading: (leading) => {
      log.info({}, "leadership acquired");
      part.leading = true;
      leading.addEventListener("abort", () => {
        part.leading = false;
        log.info({}, "leadership ended");
      });
      const store = reflectors.get(typeId(controller.for));
      if (store === undefined) return;
      // Whatever happened while nobody led is in the store: request all of it, and again as the resync interval says.
      const onError = (error: Error) => log.warn({ err: error }, "resync failed, retrying");
      const onLost = () => log.warn({}, "possible Redis data loss, full resync started");
      runResync({
        controller,
        store,
        source,
        seen: () => seenBy(controller, reflectors),
        incarnation: () => queue.incarnation(),
        signal: leading,
        onError,
        onLost,
        again: (signal) => part.again.next(signal),
      }).catch((error: unknown) => {
        if (!leading.aborted) log.error({ err: ensureError(error) }, "resync stopped");
      });
    },
    onError: (error) => {
      // That nothing may be sent is told by the guard, once.
      const level = isKonvergeError(error) && error.code === "deferred" ? "debug" : "warn";
      log[level]({ err: error }, "leader election attempt failed");
      if (isForbidden(error)) options.onForbidden?.(error);
    },
  });
}

/** A child that was deleted while nobody led is known by nothing but its absence: whoever looks for it must have seen that. */
function seenBy(
  { owns, watches }: Controller,
  reflectors: Reflectors,
): NonNullable<Trigger["seen"]> {
  const seen: Record<string, string> = {};
  for (const type of [...owns, ...watches.map((watch) => watch.type)]) {
    const version = reflectors.get(typeId(type))?.lastVersion;
    if (version !== undefined) seen[typeId(type)] = version;
  }
  return seen;
}
