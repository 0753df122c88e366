import { afterEach } from "vitest";
import type { Fault } from "@konverge/core";
import { faultId, openNotificationStore, type NotificationStore } from "@konverge/queue";
import { createMetrics, type Metrics } from "@konverge/telemetry";
import { keepLog, type LogLine } from "../../../apps/cli/src/testing/kept-log.ts";
import { Notifier } from "../../../libs/worker/src/notify/notifier.ts";
import type { NotifyRule } from "../../../libs/worker/src/notify/notify-options.ts";
import { until } from "../../support/until.ts";
import { CLUSTER, type QueueHarness } from "../queue/queue-harness.ts";

interface RunningNotifier {
  readonly lines: LogLine[];
  readonly metrics: Metrics;
  readonly stop: () => Promise<void>;
}

export interface NotifyHarness {
  readonly store: NotificationStore;
  /** The current faults, by id. */
  readonly faults: Map<string, Fault>;
  /** Starts or ends faults. */
  begin(...faults: readonly Fault[]): void;
  end(...faults: readonly Fault[]): void;
  /** Resolves when a notifier has read the current faults twice. */
  observed(): Promise<void>;
  start(rules: readonly NotifyRule[], env?: NodeJS.ProcessEnv): RunningNotifier;
}

export function faultOf(at: number, more: Partial<Fault> = {}): Fault {
  const subject = more.subject ?? `web/apps/deployments/default/demo/web-${at}`;
  return {
    event: "dead_letter",
    group: "web",
    summary: `web: demo/web-${at} is dead-lettered (invalid)`,
    sinceMs: 1_700_000_000_000 + at,
    ...more,
    subject,
  };
}

/** Notifiers whose faults the test decides, on a real Redis. */
export function useNotifiers(queues: QueueHarness): NotifyHarness {
  const closes: (() => Promise<unknown>)[] = [];
  const faults = new Map<string, Fault>();
  let opened: NotificationStore | undefined;
  let observations = 0;
  afterEach(async () => {
    for (const close of closes.splice(0).toReversed()) await close();
    opened = undefined;
    faults.clear();
  });
  const store = () => {
    if (opened !== undefined) return opened;
    opened = openNotificationStore({
      redis: queues.target,
      prefix: queues.prefix,
      cluster: CLUSTER,
      onError: () => undefined,
    });
    closes.push(opened.close.bind(opened));
    return opened;
  };
  return {
    get store() {
      return store();
    },
    faults,
    begin: (...begun) => begun.forEach((fault) => faults.set(faultId(fault), fault)),
    end: (...ended) => ended.forEach((fault) => faults.delete(faultId(fault))),
    async observed() {
      const before = observations;
      await until("the faults are observed", () => observations >= before + 2);
    },
    start(rules, env = {}) {
      const lines: LogLine[] = [];
      const metrics = createMetrics({ version: "test" });
      const notifier = new Notifier({
        rules,
        store: store(),
        observe: () => {
          observations += 1;
          return Promise.resolve({ faults: new Map(faults), partial: new Set() });
        },
        place: { installation: "test", cluster: CLUSTER },
        env,
        log: keepLog(lines),
        metrics,
        everyMs: 20,
        retryMs: 40,
        leaseMs: 2_000,
      });
      const stop = () => notifier.stop();
      closes.push(stop);
      return { lines, metrics, stop };
    },
  };
}
