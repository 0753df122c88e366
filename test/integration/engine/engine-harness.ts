import { afterAll, afterEach, beforeAll } from "vitest";
import { defined, type ObjectKey, type ResourceType } from "@konverge/core";
import {
  defineController,
  startEngine,
  type Controller,
  type ControllerOptions,
  type Engine,
  type EngineOptions,
  type Predicate,
} from "@konverge/engine";
import { isAlreadyExists, type KubeClient, type KubeconfigOptions } from "@konverge/kube";
import { ConfigMap, Namespace, Secret } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { createWorkQueue, type StoredAttempt, type WorkQueue } from "@konverge/queue";
import { createMetrics, type Metrics } from "@konverge/telemetry";
import { keepLog, type LogLine } from "../../../apps/cli/src/testing/kept-log.ts";
import {
  installWidgets,
  removeWidgets,
  type TestServer,
  type Widget,
} from "../kube/kube-servers.ts";
import { useQueues, type QueueHarness } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

/** Unique per process: files run in parallel and share the real server. Files of one process run after each other. */
export const namespace = `engine-${process.pid}`;
/** For tests that lose a lease. The leases of all others are long, because a busy machine may delay a renewal by seconds. */
export const LEASE_MS = 1_000;

export interface StartedEngine {
  readonly engine: Engine;
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly lines: LogLine[];
  readonly metrics: Metrics;
  readonly key: (name: string) => ObjectKey;
  /** Newest first, with the records parsed. */
  readonly records: (
    name: string,
  ) => Promise<(StoredAttempt & { readonly parsed: ParsedRecord })[]>;
}

interface ParsedRecord {
  readonly outcome: string;
  readonly error?: { readonly code: string; readonly message: string };
  readonly [field: string]: unknown;
}

export interface EngineHarness {
  readonly queues: QueueHarness;
  readonly client: KubeClient;
  readonly Widgets: ResourceType<Widget>;
  readonly kubeconfig: KubeconfigOptions;
  start(
    options: Omit<ControllerOptions<Widget>, "name" | "for"> & {
      readonly name?: string;
      /** Of the changes of widgets. */
      readonly predicate?: Predicate<Widget>;
    },
    engineOptions?: Partial<EngineOptions>,
  ): Promise<StartedEngine>;
  startController(
    controller: Controller,
    engineOptions?: Partial<EngineOptions>,
  ): Promise<StartedEngine>;
  make(name: string, spec?: Widget["spec"], metadata?: object): Promise<Widget>;
  /** Runs `close` once the engines of this test have stopped. */
  onStopped(close: () => unknown): void;
}

/** Engines with their own kinds on a server, and with real queues. All of it is stopped and deleted after the tests. */
export function useEngines(
  target: TestServer,
  group: string,
  { leaseMs = 60_000 }: { readonly leaseMs?: number } = {},
): EngineHarness {
  const queues = useQueues();
  const engines = new Set<Engine>();
  const opened = new Set<WorkQueue>();
  const closes = new Set<() => unknown>();
  let serial = 0;
  const open: {
    client?: KubeClient;
    close?: () => Promise<void>;
    kubeconfig?: KubeconfigOptions;
    Widgets?: ResourceType<Widget>;
  } = {};
  const client = (): KubeClient => {
    if (open.client === undefined) throw new Error("the server is not started yet");
    return open.client;
  };
  const widgets = (): ResourceType<Widget> => {
    if (open.Widgets === undefined) throw new Error("the server is not started yet");
    return open.Widgets;
  };

  beforeAll(async () => {
    const server = await target.open();
    open.client = server.client;
    open.close = () => server.close();
    open.kubeconfig = server.kubeconfig;
    await server.client.create(Namespace, { metadata: { name: namespace } }).catch((error) => {
      // Another suite of the file created it.
      if (!isAlreadyExists(error)) throw error;
    });
    open.Widgets = await installWidgets(server.client, group);
  });
  afterEach(async () => {
    await Promise.all([...engines].map((engine) => engine.stop({ graceMs: 1_000 })));
    engines.clear();
    await Promise.all([...opened].map((queue) => queue.close()));
    opened.clear();
    await Promise.all([...closes].map((close) => close()));
    closes.clear();
    const { items } = await client().list(widgets(), { namespace });
    for (const { metadata } of items) {
      const name = { namespace, name: metadata.name };
      await client().mutate(widgets(), name, (draft) => {
        delete draft.metadata.finalizers;
      });
      await client()
        .delete(widgets(), name)
        .catch(() => undefined);
    }
    // The next engine lists from the server's watch cache, which may still have them.
    await until("the watch cache has forgotten them", async () => {
      const cached = await client().list(widgets(), { namespace, resourceVersion: "0", limit: 0 });
      return cached.items.length === 0;
    });
  });
  afterAll(async () => {
    await removeWidgets(client(), group);
    // The next file of this process has the same namespace.
    for (const type of [ConfigMap, Secret]) await client().deleteCollection(type, { namespace });
    await open.close?.();
  });

  const queueFor = ({ name }: Pick<Controller, "name">) => {
    const queue = createWorkQueue({
      redis: queues.target,
      controller: name,
      cluster: "default",
      prefix: queues.prefix,
      leaseMs,
    });
    opened.add(queue);
    return queue;
  };
  const lanesOf = (processId: string) => {
    const lane = createObjectLanes({
      redis: queues.target,
      cluster: "default",
      prefix: queues.prefix,
      processId,
      onError: () => undefined,
    });
    closes.add(() => lane.close());
    return lane;
  };
  const startController = async (
    controller: Controller,
    engineOptions: Partial<EngineOptions> = {},
  ): Promise<StartedEngine> => {
    const workerId = `test-${process.pid}-${++serial}`;
    const lines: LogLine[] = [];
    const metrics = createMetrics({ version: "test" });
    const engine = await startEngine({
      controllers: [controller],
      client: client(),
      lanes: lanesOf(workerId),
      queueFor,
      workerId,
      log: keepLog(lines),
      metrics,
      installation: `${workerId}-${Date.now()}`,
      leaseNamespace: namespace,
      // A new leader would request every object again.
      election: { leaseDurationMs: 60_000, renewDeadlineMs: 45_000, retryPeriodMs: 400 },
      ...engineOptions,
    });
    engines.add(engine);
    const queue = queueFor(controller);
    const key = (name: string): ObjectKey => ({
      controller: controller.name,
      cluster: "default",
      resource: controller.for.resource,
      group: controller.for.group,
      namespace,
      name,
    });
    return {
      engine,
      controller,
      queue,
      lines,
      metrics,
      key,
      records: async (name) => {
        const attempts = await queue.listAttempts(key(name));
        return attempts.map((attempt) => ({
          ...attempt,
          parsed: JSON.parse(attempt.record) as ParsedRecord,
        }));
      },
    };
  };

  return {
    queues,
    get client() {
      return client();
    },
    get Widgets() {
      return widgets();
    },
    get kubeconfig() {
      return open.kubeconfig ?? {};
    },
    startController,
    onStopped: (close) => void closes.add(close),
    start: ({ name = `widgets-${++serial}`, predicate, ...options }, engineOptions) => {
      const source = { type: widgets(), ...defined({ predicate }) };
      return startController(defineController({ name, for: source, ...options }), engineOptions);
    },
    make: (name, spec = { size: 1 }, metadata = {}) =>
      client().create(widgets(), { metadata: { namespace, name, ...metadata }, spec }),
  };
}

/** Retries immediately, so that tests do not wait. */
export const eager = {
  failure: { baseMs: 1, factor: 1, capMs: 1, jitter: { kind: "none" } },
  conflict: { baseMs: 1, factor: 1, capMs: 1, jitter: { kind: "none" } },
  rejected: { baseMs: 1, factor: 1, capMs: 1, jitter: { kind: "none" } },
} as const;
