import type { ApiObject, ObjectKey, ResourceType } from "@konverge/core";
import {
  defineController,
  startEngine,
  type Controller,
  type ControllerOptions,
  type Engine,
  type Log,
} from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import {
  createHistoryReader,
  createHistoryWriter,
  createObjectLanes,
  createWorkQueue,
  type HistoryReader,
  type WorkQueue,
} from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { afterAll, afterEach, beforeAll } from "vitest";
import { installWidgets, removeWidgets, type TestServer, type Widget } from "./kube-servers.ts";
import { useQueues, type QueueHarness } from "./queue-harness.ts";

export const namespace = "default";

interface LogLine extends Record<string, unknown> {
  readonly level: string;
  readonly message: string;
}

export interface HistoryHarness {
  readonly client: KubeClient;
  readonly widgets: ResourceType<Widget>;
  readonly queues: QueueHarness;
  readonly lines: LogLine[];
  readonly reader: HistoryReader;
  start(options: Partial<ControllerOptions<Widget>>): Promise<{
    readonly controller: Controller;
    readonly queue: WorkQueue;
    readonly key: (name: string) => ObjectKey;
    readonly metrics: ReturnType<typeof createMetrics>;
  }>;
  make(name: string, spec?: Widget["spec"]): Promise<Widget>;
}

/** An engine with history on a server, its objects and Redis keys gone after each test. */
export function useHistory(target: TestServer, group: string): HistoryHarness {
  const queues = useQueues();
  let client: KubeClient | undefined;
  let closeServer: () => Promise<void>;
  let widgets: ResourceType<Widget> | undefined;
  let serial = 0;
  const lines: LogLine[] = [];
  const ends: (() => unknown)[] = [];
  let reader: HistoryReader | undefined;

  const log = (bindings: Record<string, unknown>): Log => {
    const at = (level: string) => (fields: object, message: string) =>
      void lines.push({ ...bindings, ...fields, level, message });
    return {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      child: (more) => log({ ...bindings, ...more }),
    };
  };
  const connected = () => {
    if (client === undefined || widgets === undefined) throw new Error("not started yet");
    return { client, widgets };
  };

  beforeAll(async () => {
    const server = await target.open();
    client = server.client;
    closeServer = () => server.close();
    widgets = await installWidgets(client, group);
  });
  afterEach(async () => {
    for (const end of ends.toReversed()) await end();
    ends.length = 0;
    lines.length = 0;
    await reader?.close();
    reader = undefined;
    const { items } = await connected().client.list(connected().widgets, { namespace });
    for (const { metadata } of items) {
      await connected().client.delete(connected().widgets, { namespace, name: metadata.name });
    }
  });
  afterAll(async () => {
    await removeWidgets(connected().client, group);
    await closeServer();
  });

  return {
    get client() {
      return connected().client;
    },
    get widgets() {
      return connected().widgets;
    },
    queues,
    lines,
    get reader() {
      reader ??= createHistoryReader({
        redis: { url: queues.url },
        cluster: "default",
        prefix: queues.prefix,
        onError: () => undefined,
      });
      return reader;
    },
    async start(options) {
      const name = options.name ?? `widgets-${++serial}`;
      const controller = defineController<Widget>({
        for: connected().widgets,
        reconcile: async () => undefined,
        ...options,
        name,
      });
      const redis = { url: queues.url };
      const common = { redis, cluster: "default", prefix: queues.prefix };
      const open = () => {
        const queue = createWorkQueue({ ...common, controller: name });
        ends.push(() => queue.close());
        return queue;
      };
      const lanes = createObjectLanes({
        ...common,
        processId: `test-${process.pid}-${serial}`,
        onError: () => undefined,
      });
      const history = createHistoryWriter({
        ...common,
        budgetBytes: 10_000_000,
        onError: () => undefined,
      });
      const metrics = createMetrics({ version: "test" });
      ends.push(() => lanes.close());
      ends.push(() => history.close());
      const engine: Engine = await startEngine({
        controllers: [controller],
        client: connected().client,
        lanes,
        history,
        queueFor: open,
        workerId: `test-${process.pid}-${serial}`,
        log: log({}),
        metrics,
        installation: `test-${process.pid}-${Date.now()}-${serial}`,
        leaseNamespace: namespace,
        election: { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 },
      });
      ends.push(() => engine.stop({ graceMs: 1_000 }));
      return {
        controller,
        queue: open(),
        metrics,
        key: (objectName) => ({
          controller: name,
          cluster: "default",
          resource: "widgets",
          group,
          namespace,
          name: objectName,
        }),
      };
    },
    make: (name, spec = { size: 1 }) =>
      connected().client.create(connected().widgets, { metadata: { namespace, name }, spec }),
  };
}

/** The Events about an object. */
export async function eventsAbout(client: KubeClient, name: string): Promise<ApiObject[]> {
  const { items } = await client.list(
    { group: "", version: "v1", kind: "Event", resource: "events", scope: "Namespaced" },
    { namespace },
  );
  return items.filter((event) => {
    const about = event as { readonly involvedObject?: { readonly name?: string } };
    return about.involvedObject?.name === name;
  });
}
