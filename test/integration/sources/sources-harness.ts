import { afterEach } from "vitest";
import type { ObjectKey } from "@konverge/core";
import { defineController, type Controller, type EventSource } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { openSourceStore, type SourceStore, type WorkQueue } from "@konverge/queue";
import { createMetrics, type Metrics } from "@konverge/telemetry";
import { keepLog, type LogLine } from "../../../apps/cli/src/testing/kept-log.ts";
import { runSources } from "../../../libs/engine/src/sources/run-sources.ts";
import type { QueueHarness } from "../queue/queue-harness.ts";

const CONTROLLER = "sourced";

interface Leading {
  readonly lines: LogLine[];
  readonly metrics: Metrics;
  /** Ends the leadership. */
  readonly stop: () => Promise<void>;
}

interface LeadOptions {
  readonly checkMs?: number;
  /** Used instead of the queue of the harness. */
  readonly queue?: WorkQueue;
  /** Used instead of the store of the harness. */
  readonly store?: SourceStore;
}

export interface SourcesHarness {
  readonly queue: WorkQueue;
  readonly store: SourceStore;
  keyOf(name: string): ObjectKey;
  /** Requests of each object, by name. */
  requests(): Promise<Record<string, number>>;
  /** Requests of each object of a controller that leads, by namespace and name. */
  requestsOf(): Promise<Record<string, number>>;
  /** Runs the sources of a controller as its leader does. */
  leadAs(controller: Controller, options?: LeadOptions): Leading;
  /** Runs sources as a leader does. */
  lead(sources: readonly EventSource[], options?: LeadOptions): Leading;
}

/** Sources of a controller of ConfigMaps of the namespace `n`, without its watches. */
export function useSources(queues: QueueHarness): SourcesHarness {
  const closes: (() => Promise<unknown>)[] = [];
  let opened: { readonly queue: WorkQueue; readonly store: SourceStore } | undefined;
  afterEach(async () => {
    for (const close of closes.splice(0).toReversed()) await close();
    opened = undefined;
  });
  const open = (controller = CONTROLLER) => {
    if (opened !== undefined) return opened;
    const queue = queues.open({ controller });
    const store = openSourceStore({
      redis: queues.target,
      prefix: queues.prefix,
      cluster: queue.cluster,
      onError: () => undefined,
    });
    closes.push(() => store.close());
    opened = { queue, store };
    return opened;
  };
  return {
    get queue() {
      return open().queue;
    },
    get store() {
      return open().store;
    },
    keyOf: (name) => ({
      controller: CONTROLLER,
      cluster: open().queue.cluster,
      resource: "configmaps",
      group: "",
      namespace: "n",
      name,
    }),
    async requests() {
      const requests = Object.entries(await this.requestsOf());
      return Object.fromEntries(
        requests.map(([key, number]) => [key.replace(/^.*\//, ""), number]),
      );
    },
    async requestsOf() {
      const found: Record<string, number> = {};
      for await (const page of open().queue.listKeys()) {
        for (const key of page) {
          const [number = 0] = await open().queue.waitingRequests([key]);
          found[`${key.namespace}/${key.name}`] = number;
        }
      }
      return found;
    },
    leadAs(controller, options = {}) {
      const { queue } = open(controller.name);
      const lines: LogLine[] = [];
      const metrics = createMetrics({ version: "test" });
      const leading = new AbortController();
      const ended = runSources({
        queue,
        store: open().store,
        controller,
        metrics,
        log: keepLog(lines),
        workerId: "w",
        signal: leading.signal,
        ...options,
      }).catch(() => undefined);
      const stop = async () => {
        leading.abort();
        await ended;
      };
      closes.push(stop);
      return { lines, metrics, stop };
    },
    lead(sources, options) {
      const controller = defineController({
        name: CONTROLLER,
        for: ConfigMap,
        sources,
        reconcile: async () => undefined,
      });
      return this.leadAs(controller, options);
    },
  };
}
