import { hostname } from "node:os";
import { codecName, defined, DEFAULT_GUARD_LIMITS } from "@konverge/core";
import { startEngine, type Engine, type EngineOptions } from "@konverge/engine";
import {
  createApprovalStore,
  createDriftStore,
  createRecordingStore,
  createWorkQueue,
  openSourceStore,
  QueueProcess,
  type AnnouncedWorker,
  type SourceStore,
} from "@konverge/queue";
import { closeRedis, openProducer } from "@konverge/redis";
import { observeRequests, type Metrics } from "@konverge/telemetry";
import { clusterLimits } from "./config/cluster-options.ts";
import type { Config } from "./config/define-config.ts";
import type { WorkerConnections } from "./connect-worker.ts";
import { electionTimes } from "./election-times.ts";
import { defineVersion, followFleet } from "./follow-fleet.ts";
import { createLoadReport } from "./load-report.ts";
import { createRunStarter } from "./run-starter.ts";
import type { WorkerSetup } from "./worker-setup.ts";

/** Shortest time between two explanations of missing permissions, in ms; each asks the API server. */
const FORBIDDEN_AGAIN_MS = 60_000;

/** Shortest time between two measurements of the caches, in ms; each serializes some of their objects. */
const CACHES_AGAIN_MS = 30_000;

/** Runs the controllers. Resolves after the first lists. */
export async function startWorkerEngine(
  setup: WorkerSetup,
  connections: WorkerConnections,
): Promise<Engine> {
  let engine: Engine | undefined;
  // Before the engine, so that other workers notice when this one leaves.
  announceWorker(setup, connections, {
    onOnlyOurs: (controller) =>
      engine?.requestAgain(controller, "the last worker of another version has gone"),
    engine: () => engine,
  });
  engine = await startEngine(engineOptions(setup, connections));
  return engine;
}

function announceWorker(
  { config, workerId, options }: WorkerSetup,
  { registry, home }: WorkerConnections,
  {
    onOnlyOurs,
    engine,
  }: {
    readonly onOnlyOurs: (controller: string) => void;
    readonly engine: () => Engine | undefined;
  },
): void {
  const { settings, version, log, metrics } = options;
  const { controllers, workflows, codec } = config;
  const definitions = definitionsOf(config, settings.buildId);
  registry.heartbeat(
    {
      workerId,
      controllers: controllers.map(({ name }) => name),
      definitions,
      workflows: Object.fromEntries(workflows.map(({ name, version: of }) => [name, of])),
      ...defined({ codec: codec && codecName(codec) }),
      role: settings.role,
      version,
      startedAt: new Date().toISOString(),
      host: hostname(),
      readsObjects: settings.objectReads === "on",
      runsPlans: settings.plans === "on",
    },
    {
      onOthers: followFleet({ definitions, log, onOnlyOurs }),
      caches: createCacheReport(metrics),
      load: createLoadReport({ engine, guard: home.guard }),
    },
  );
}

function definitionsOf({ controllers }: Config, buildId: string): AnnouncedWorker["definitions"] {
  return Object.fromEntries(
    controllers.map((controller) => [controller.name, defineVersion(controller, buildId)]),
  );
}

/** Without a build ID, the digest does not cover the code that handlers call. */
function buildsOf(config: Config, buildId: string): Readonly<Record<string, string>> | undefined {
  if (buildId === "") return undefined;
  const definitions = Object.entries(definitionsOf(config, buildId));
  return Object.fromEntries(definitions.map(([name, { digest }]) => [name, digest]));
}

function engineOptions(
  setup: WorkerSetup,
  { home, clusters, lanes, history, runner, limits, restore }: WorkerConnections,
): EngineOptions {
  const { config, cluster, place, shards, workerId, tracing, shutdown } = setup;
  const { settings, log, metrics } = setup.options;
  const process = new QueueProcess(place.redis);
  return {
    controllers: config.controllers,
    use: config.use,
    client: home.client,
    clusters,
    lanes,
    history,
    runs: () => createRunStarter(runner.runs(), { isCoded: config.codec !== undefined }),
    queueFor: ({ name }) =>
      createWorkQueue({
        ...place,
        controller: name,
        shards,
        process,
        fence: restore.fence("keys"),
        onError: (error) => log.warn({ err: error, controller: name }, "queue connection error"),
        observe: observeRequests(metrics, tracing),
      }),
    workerId,
    role: settings.role,
    log,
    metrics,
    ...defined({
      builds: buildsOf(config, settings.buildId),
      tracing,
      sources: openSources(setup),
      ...openStores(setup),
      concurrency: settings.concurrency,
      limits,
      namespaces: setup.namespaces,
      signal: setup.engagement?.signal,
    }),
    ratePerSecond: { ...DEFAULT_GUARD_LIMITS, ...clusterLimits(cluster) }.ratePerSecond,
    conflictRetry: settings.conflictRetry,
    onWorkable: (listener) => home.guard.onWorkable(listener),
    onAccepted: (listener) => restore.follow("keys", listener),
    onForbidden: atMostEvery(FORBIDDEN_AGAIN_MS, async (error) => {
      const err = await setup.explain(error, home.client);
      log.error({ err }, "Kubernetes permissions missing");
    }),
    installation: place.prefix,
    leaseNamespace: settings.leaseNamespace,
    election: electionTimes(settings.leaseDuration),
    release: shutdown,
  };
}

/** Undefined if no controller has sources besides its watches. */
function openSources(setup: WorkerSetup): SourceStore | undefined {
  const { config, place, options } = setup;
  if (config.controllers.every(({ eventSources }) => eventSources.length === 0)) return undefined;
  const store = openSourceStore({
    ...place,
    onError: (error) => options.log.warn({ err: error }, "source connection error"),
  });
  setup.atEnd("connections of the sources", () => store.close());
  return store;
}

/** The stores of plans, and of what handlers read, on one connection; none without controllers that use them. */
function openStores(
  setup: WorkerSetup,
): Pick<EngineOptions, "approvals" | "drifts" | "recordings"> {
  const { config, place, options } = setup;
  const approves = config.controllers.some(({ approval }) => approval !== undefined);
  const observes = config.controllers.some(({ mode }) => mode === "observe");
  const records = config.controllers.some(({ recordsReads }) => recordsReads);
  if (!approves && !observes && !records) return {};
  const redis = openProducer(place.redis);
  redis.on("error", (error) => options.log.warn({ err: error }, "plan store connection error"));
  setup.atEnd("the connection of plans and recordings", () => closeRedis(redis));
  return {
    ...(approves ? { approvals: createApprovalStore(redis, place) } : {}),
    ...(observes ? { drifts: createDriftStore(redis, place) } : {}),
    ...(records ? { recordings: createRecordingStore(redis, place) } : {}),
  };
}

/** Repeats the last measurement until it is old. Empty caches are measured again, because that costs nothing. */
function createCacheReport(
  metrics: Pick<Metrics, "measureCaches">,
): () => ReturnType<Metrics["measureCaches"]> {
  let caches = metrics.measureCaches();
  let measuredAtMs = -Infinity;
  return () => {
    const isEmpty = caches.every(({ objects }) => objects === 0);
    if (isEmpty || performance.now() >= measuredAtMs + CACHES_AGAIN_MS) {
      caches = metrics.measureCaches();
      measuredAtMs = performance.now();
    }
    return caches;
  };
}

/** Limits reports of an error that every try repeats. */
function atMostEvery(ms: number, report: (error: Error) => Promise<void>): (error: Error) => void {
  let againAtMs = -Infinity;
  return (error) => {
    if (performance.now() < againAtMs) return;
    againAtMs = performance.now() + ms;
    void report(error);
  };
}
