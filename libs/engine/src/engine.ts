import { defined, KonvergeError } from "@konverge/core";
import type { KubeClient, LeaderElection, NamespacedName } from "@konverge/kube";
import { ProcessQuarantine, type QueueWorker } from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import { describeObject, type DescribedObject } from "./access/describe-object.ts";
import { createObjectCache, type ObjectCache } from "./access/object-cache.ts";
import { watchLoop, type LoopWatch } from "./attempt/loop-watch.ts";
import { createShutdown } from "./create-shutdown.ts";
import type { Controller } from "./define/define-controller.ts";
import type { Log } from "./define/log.ts";
import type { EngineOptions } from "./engine-options.ts";
import { requestApproved } from "./approve/request-approved.ts";
import { AttemptHistory } from "./history/attempt-history.ts";
import { OutageLog } from "./history/outage-log.ts";
import { checkServed } from "./watch/check-served.ts";
import { followWorkable } from "./watch/follow-workable.ts";
import { warnOfLeftFinalizers } from "./watch/left-finalizers.ts";
import { MissedChanges } from "./watch/missed-changes.ts";
import { createRequestSource } from "./watch/request-source.ts";
import { createRepeatedSignal, startLeader, type Leader } from "./watch/start-leader.ts";
import { assertScopes } from "./watch/scope-of.ts";
import { startReflectors, type Reflectors } from "./watch/start-reflectors.ts";
import { concurrencyOf, runtimeOf, workOnController } from "./work-on-controller.ts";
import { runPlan, type PlanRequest } from "./plan/run-plan.ts";

export interface Engine {
  /** True from the first list of every watch until it stops. */
  readonly ready: boolean;
  /** Running attempts and their upper bound, by controller. Empty without the role `work`. */
  readonly slots: Readonly<Record<string, { readonly running: number; readonly limit: number }>>;
  /** Attempts that have ended here since the start. */
  readonly finished: number;
  /** Names of the controllers whose watches this process leads. */
  readonly leads: readonly string[];
  /** Enqueues all objects of the controller again, if this process leads it. */
  requestAgain(controller: string, reason: string): void;
  /**
   * Reads an object of a controller for a user, with its events and children and without secrets.
   * @throws KonvergeError `unknown_controller`, or as `KubeClient.get`
   */
  describe(
    controller: string,
    target: NamespacedName,
    options?: { readonly signal?: AbortSignal },
  ): Promise<DescribedObject>;
  /**
   * Plans the next attempt of an object; see {@link runPlan}.
   * @throws KonvergeError `unknown_controller`
   */
  plan(request: PlanRequest): Promise<PlanRecord>;
  /** Takes no new work, waits up to `graceMs` for running attempts, aborts the rest, and ends leadership; see `Shutdown`. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** As `stop`, or during one, but aborts running attempts at once; their keys run again in another worker. */
  kill(): Promise<void>;
}

/**
 * Runs controllers on one cluster: the leader turns watched changes into requests, and every process with the role `work` turns
 * requests into attempts. Resolves after the first lists, when work is being taken.
 * @throws KonvergeError `invalid_config` if a source can have no objects, `crd_mismatch` if the cluster does not serve a kind;
 *   KubeApiError if it forbids to watch one
 */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { controllers, client, log, role = "all" } = options;
  assertScopes(controllers, options.namespaces);
  assertStore(options);
  await Promise.all(controllers.map((controller) => checkServed(controller, client, log)));
  const parts = controllers.map((controller) => openPart(controller, options));
  const unobserve = parts.flatMap((part) => observePart(part, options));

  const state = { ready: false };
  const reflectors = await startWatches(parts, options, state).catch((error: unknown) => {
    for (const end of unobserve) end();
    throw error;
  });
  const loop = options.loop ?? watchLoop(log);
  const candidates = role === "work" ? [] : parts;
  for (const { controller } of candidates) {
    const objects = reflectors.groupOf(controller.sources[0]).list();
    warnOfLeftFinalizers(controller, objects, log);
  }
  const elections = candidates.map((part) => ({
    what: `the leader Lease of ${part.controller.name}`,
    election: startLeader(part, { ...options, reflectors }),
  }));
  const history = openHistory(options);
  const cache = createObjectCache(reflectors);
  const quarantine = new ProcessQuarantine();
  const outages = new OutageLog();
  const workers = (role === "watch" ? [] : parts).map((part) => ({
    controller: part.controller.name,
    limit: concurrencyOf(part.controller, options),
    worker: workOnController(
      part,
      { reflectors, cache, loop, history, quarantine, outages },
      options,
    ),
  }));
  const stopSweep = role === "watch" ? () => undefined : requestApproved(parts, options);
  const unsubscribe = followWorkable(
    workers.map(({ worker }) => worker),
    { ...options, onChange: (isWorkable) => outages.note(isWorkable) },
    log,
  );
  state.ready = true;
  log.info({ role, controllers: controllers.map(({ name }) => name) }, "engine started");
  const started = {
    state,
    parts,
    reflectors,
    elections,
    history,
    workers,
    loop,
    cache,
    unsubscribe,
    unobserve: [...unobserve, stopSweep],
  };
  return new RunningEngine(started, options);
}

/** @throws KonvergeError `invalid_config` */
function assertStore({ controllers, sources, approvals, drifts }: EngineOptions): void {
  const lacks = (
    option: "sources" | "approvals" | "drifts",
    has: string,
    isNeeded: (controller: Controller) => boolean,
  ): void => {
    const needy = controllers.find(isNeeded);
    if (needy === undefined) return;
    const detail = `controller "${needy.name}" has ${has}; set the engine option ${option}`;
    throw new KonvergeError("invalid_config", detail);
  };
  if (sources === undefined)
    lacks("sources", "sources", ({ eventSources }) => eventSources.length > 0);
  if (approvals === undefined) {
    lacks("approvals", "approval", ({ approval }) => approval !== undefined);
  }
  if (drifts === undefined) lacks("drifts", 'mode "observe"', ({ mode }) => mode === "observe");
}

function openPart(
  controller: Controller,
  { queueFor, log, client, metrics }: EngineOptions,
): Leader {
  const queue = queueFor(controller);
  return {
    controller,
    queue,
    source: createRequestSource(controller, queue, {
      log,
      isSensitive: (type) => client.isSensitive(type),
      onError: (of) => metrics.watchFunctionFailed(controller.name, of),
    }),
    leading: false,
    missed: new MissedChanges(),
    again: createRepeatedSignal(),
  };
}

/** Returns the functions that end it. */
function observePart(part: Leader, options: EngineOptions): (() => void)[] {
  const { controller, queue } = part;
  const { metrics, role, drifts } = options;
  const drifted = async () =>
    controller.mode === "observe" ? await drifts?.count(controller.name) : undefined;
  return [
    metrics.addController(controller.name, {
      concurrency: role === "watch" ? 0 : concurrencyOf(controller, options),
      timeoutMs: controller.timeoutMs,
      slo: controller.slo,
    }),
    metrics.observeQueue(controller.name, {
      isLeader: () => part.leading,
      counts: async () => {
        const [counts, backlog, objects] = await Promise.all([
          queue.counts(),
          queue.backlog(),
          drifted(),
        ]);
        return { ...counts, ...backlog, ...defined({ drifted: objects }) };
      },
    }),
  ];
}

/** Resolves after the first lists. On failure it releases the watches and the queues. */
async function startWatches(
  parts: readonly Leader[],
  { client, log, metrics, role = "all", namespaces, onForbidden, signal }: EngineOptions,
  state: { readonly ready: boolean },
): Promise<Reflectors> {
  const failed = Promise.withResolvers<never>();
  // After startup there is no listener.
  failed.promise.catch(() => undefined);
  const reflectors = startReflectors(parts, {
    client,
    log,
    metrics,
    role,
    namespaces,
    onForbidden: (error) => {
      failed.reject(error);
      if (state.ready) onForbidden?.(error);
    },
  });
  const onAbort = () => failed.reject(signal?.reason);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([reflectors.synced(), failed.promise]);
    return reflectors;
  } catch (error) {
    await reflectors.stop();
    // A connection that is closed while it opens reports an error.
    await Promise.allSettled(parts.map(({ queue }) => queue.counts()));
    await Promise.all(parts.map(({ queue }) => queue.close()));
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function openHistory(options: EngineOptions): AttemptHistory | undefined {
  const { history: writer, client, workerId, log, metrics } = options;
  if (writer === undefined) return undefined;
  return new AttemptHistory({ writer, client, workerId, log, metrics });
}

interface Started {
  readonly state: { ready: boolean };
  readonly parts: readonly Leader[];
  readonly reflectors: Reflectors;
  readonly elections: readonly { readonly what: string; readonly election: LeaderElection }[];
  readonly history: AttemptHistory | undefined;
  readonly workers: readonly {
    readonly controller: string;
    readonly limit: number;
    readonly worker: QueueWorker;
  }[];
  readonly loop: LoopWatch;
  readonly cache: ObjectCache;
  readonly unsubscribe: () => void;
  readonly unobserve: readonly (() => void)[];
}

class RunningEngine implements Engine {
  readonly #started: Started;
  readonly #options: EngineOptions;
  readonly #client: KubeClient;
  readonly #log: Log;
  readonly #plans = new AbortController();
  readonly #release: NonNullable<EngineOptions["release"]>;
  #stopping: Promise<void> | undefined;

  constructor(started: Started, options: EngineOptions) {
    const { client, log, release = createShutdown(log) } = options;
    this.#started = started;
    this.#options = options;
    this.#client = client;
    this.#log = log;
    this.#release = release;
  }

  get ready(): boolean {
    return this.#started.state.ready;
  }

  get slots(): Engine["slots"] {
    return Object.fromEntries(
      this.#started.workers.map(({ controller, limit, worker }) => [
        controller,
        { running: worker.active, limit },
      ]),
    );
  }

  get finished(): number {
    return this.#started.workers.reduce((sum, { worker }) => sum + worker.finished, 0);
  }

  get leads(): readonly string[] {
    const { parts } = this.#started;
    return parts.filter(({ leading }) => leading).map(({ controller }) => controller.name);
  }

  requestAgain(name: string, reason: string): void {
    for (const { controller, again } of this.#started.parts) {
      if (controller.name === name) again.fire(reason);
    }
  }

  async describe(
    name: string,
    target: NamespacedName,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<DescribedObject> {
    const { reflectors: stores } = this.#started;
    const controller = this.#controllerOf(name);
    // A user waits for it.
    const client = this.#client.scoped({ priority: "interactive", ...defined({ signal }) });
    const isInScope = (namespace: string) =>
      stores.isInScope(controller.sources[0], namespace, { client, atLeast: undefined });
    return await describeObject({ controller, client, stores, isInScope }, target);
  }

  async plan(request: PlanRequest): Promise<PlanRecord> {
    const controller = this.#controllerOf(request.key.controller);
    const { reflectors, cache, loop } = this.#started;
    const { workerId } = this.#options;
    const runtime = runtimeOf(controller, { reflectors, cache }, this.#options);
    const signal = AbortSignal.any([request.signal, this.#plans.signal]);
    return await runPlan(
      { ...request, signal },
      { runtime, loop, log: this.#log, worker: workerId },
    );
  }

  #controllerOf(name: string): Controller {
    const { parts } = this.#started;
    const controller = parts.map((part) => part.controller).find((each) => each.name === name);
    if (controller !== undefined) return controller;
    throw new KonvergeError("unknown_controller", `controller "${name}" does not run here`);
  }

  stop({ graceMs = 30_000 }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#shutDown(graceMs);
    return this.#stopping;
  }

  async kill(): Promise<void> {
    this.#release.begin(0);
    this.#stopping ??= this.#shutDown(0);
    await Promise.all(this.#started.workers.map(({ worker }) => worker.kill()));
    await this.#stopping;
  }

  async #shutDown(graceMs: number): Promise<void> {
    const { state, parts, reflectors, elections, history, workers, loop } = this.#started;
    const release = this.#release;
    release.begin(graceMs);
    this.#plans.abort(new KonvergeError("cancelled", "the worker stops"));
    this.#started.unsubscribe();
    state.ready = false;
    await Promise.all(workers.map(({ worker }) => worker.stop({ graceMs })));
    await release.step("the history of the last attempts", async () => await history?.stop());
    await Promise.all(
      elections.map(({ what, election }) =>
        release.step(what, (signal) => election.stop({ signal })),
      ),
    );
    await release.step("watches", () => reflectors.stop());
    for (const end of this.#started.unobserve) end();
    await release.step("queue connections", async () => {
      await Promise.all(parts.map(({ queue }) => queue.close()));
    });
    loop.stop();
    this.#log.info({}, "engine stopped");
  }
}
