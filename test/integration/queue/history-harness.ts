import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import { defineController, type ControllerOptions, type Predicate } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { Event } from "@konverge/kube/kinds";
import { createHistoryReader, createHistoryWriter, type HistoryReader } from "@konverge/queue";
import { afterEach } from "vitest";
import { namespace, useEngines, type StartedEngine } from "../engine/engine-harness.ts";
import type { TestServer, Widget } from "../kube/kube-servers.ts";
import type { QueueHarness } from "./queue-harness.ts";

interface LogLine extends Record<string, unknown> {
  readonly level: string;
  readonly message: string;
}

export interface HistoryHarness {
  readonly client: KubeClient;
  readonly widgets: ResourceType<Widget>;
  readonly queues: QueueHarness;
  /** Log lines of all engines of this test, with their fields. */
  readonly lines: readonly LogLine[];
  readonly reader: HistoryReader;
  start(
    options: Partial<ControllerOptions<Widget>> & {
      /** Of the changes of widgets. */
      readonly predicate?: Predicate<Widget>;
    },
  ): Promise<StartedEngine>;
  make(name: string, spec?: Widget["spec"]): Promise<Widget>;
}

/** Engines with history on a server. Objects and Redis keys are deleted after each test. */
export function useHistory(target: TestServer, group: string): HistoryHarness {
  const engines = useEngines(target, group);
  const started: StartedEngine[] = [];
  let serial = 0;
  let reader: HistoryReader | undefined;
  const common = () => ({
    redis: engines.queues.target,
    cluster: "default",
    prefix: engines.queues.prefix,
    onError: () => undefined,
  });
  const openReader = () => {
    const opened = createHistoryReader(common());
    engines.onStopped(() => opened.close());
    return opened;
  };
  afterEach(() => {
    started.length = 0;
    reader = undefined;
  });

  return {
    get client() {
      return engines.client;
    },
    get widgets() {
      return engines.Widgets;
    },
    queues: engines.queues,
    get lines() {
      return started.flatMap(({ lines }) =>
        lines.map(({ level, message, fields }) => ({ ...fields, level, message })),
      );
    },
    get reader() {
      reader ??= openReader();
      return reader;
    },
    async start({ predicate, ...options }) {
      const controller = defineController<Widget>({
        for: { type: engines.Widgets, ...defined({ predicate }) },
        reconcile: async () => undefined,
        name: `widgets-${++serial}`,
        ...options,
      });
      const history = createHistoryWriter({ ...common(), budgetBytes: 10_000_000 });
      engines.onStopped(() => history.close());
      const engine = await engines.startController(controller, { history });
      started.push(engine);
      return engine;
    },
    make: (name, spec) => engines.make(name, spec),
  };
}

/** Returns the Events of an object. */
export async function eventsAbout(client: KubeClient, name: string): Promise<ApiObject[]> {
  const { items } = await client.list(Event, { namespace });
  return items.filter((event) => {
    const about = event as { readonly involvedObject?: { readonly name?: string } };
    return about.involvedObject?.name === name;
  });
}
