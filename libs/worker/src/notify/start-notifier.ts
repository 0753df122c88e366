import { openNotificationStore } from "@konverge/queue";
import type { WorkerConnections } from "../connect-worker.ts";
import type { WorkerSetup } from "../worker-setup.ts";
import { Notifier } from "./notifier.ts";
import { createFaultObserver } from "./observe-faults.ts";

/** Sends notifications, if the configuration has receivers and the worker can be a leader. */
export function startNotifier(
  setup: WorkerSetup,
  { home, registry, runner }: Pick<WorkerConnections, "home" | "registry" | "runner">,
): void {
  const { config, place, shards, options } = setup;
  const { settings, metrics, env } = options;
  const rules = config.notify ?? [];
  if (rules.length === 0 || settings.role === "work") return;
  const log = options.log.child({ part: "notifications" });
  const store = openNotificationStore({
    ...place,
    onError: (error) => log.warn({ err: error }, "notification connection error"),
  });
  setup.atEnd("the connection of notifications", () => store.close());
  const observer = createFaultObserver({
    ...place,
    shards,
    events: new Set(rules.flatMap(({ on }) => on)),
    registry,
    runs: runner.runs,
    guard: home.guard,
    store,
    log,
  });
  setup.atEnd("the observer of faults", () => observer.close());
  const notifier = new Notifier({
    rules,
    store,
    observe: () => observer.observe(),
    place: { installation: place.prefix, cluster: place.cluster },
    env,
    log,
    metrics,
  });
  setup.atEnd("notifications", () => notifier.stop());
}
