import { defined } from "@konverge/core";
import type { Log, Shutdown } from "@konverge/engine";
import type { RestoreWatch } from "@konverge/queue";
import {
  openWorkflows,
  type RunObserver,
  type RunWorkerSettings,
  type Schedule,
  type Scheduler,
  type WaitWatcherSettings,
  type Workflows,
  type WorkflowsOptions,
} from "@konverge/workflow";

export interface WorkflowRunnerOptions {
  readonly queues: Omit<WorkflowsOptions, "onError" | "onWarning" | "onLog" | "fence" | "mayStart">;
  readonly restore: RestoreWatch;
  readonly log: Log;
  readonly release: Shutdown;
}

/** The workflow runs of one cluster. Opens its connections on first use. */
export interface WorkflowRunner {
  /** For starting and reading runs. */
  readonly runs: () => Workflows;
  /** Executes runs of the workflows. */
  work(settings: RunWorkerSettings): void;
  /** Takes part in the election of the process that watches the objects that runs wait for. */
  watch(settings: WaitWatcherSettings): void;
  /** Starts the due runs of these schedules, as does every other process that has them. */
  schedule(schedules: readonly Schedule[]): void;
  /** Takes no more runs, waits up to `graceMs` for running executions, aborts the rest. */
  stop(options: { readonly graceMs: number }): Promise<void>;
  /** As `stop`, or during one, but aborts at once; the runs continue in another worker. */
  kill(): Promise<void>;
  /** Called when no more runs are started. */
  close(): Promise<void>;
}

export function createWorkflowRunner({
  queues,
  restore,
  log,
  release,
}: WorkflowRunnerOptions): WorkflowRunner {
  let opened: Workflows | undefined;
  let watcher: ReturnType<Workflows["watch"]> | undefined;
  let scheduler: Scheduler | undefined;
  let worker: ReturnType<Workflows["work"]> | undefined;
  let unfollow: () => void = () => undefined;
  const runs = () =>
    (opened ??= openWorkflows({
      ...queues,
      fence: restore.fence("runs"),
      mayStart: () => restore.mayStart("runs"),
      onError: (error) => log.warn({ err: error }, "workflow error"),
      onLog({ workflow, id }, { level, message, step, attempt, fields }) {
        const target = log.child({ workflow, run: id, ...defined({ step, attempt }) });
        target[level](fields ?? {}, message);
      },
      onWarning: ({ workflow, id }, { code, message: detail }) =>
        log.warn({ workflow, run: id, code, detail }, "workflow run near a limit"),
    }));
  const end = async (ended: Promise<void> | undefined) => {
    unfollow();
    await Promise.all([
      release.step("schedules", async () => await scheduler?.stop()),
      release.step("the Lease of the watcher for runs that wait", async (signal) => {
        await watcher?.stop({ signal });
      }),
      ended,
    ]);
  };
  return {
    runs,
    work(settings) {
      if (settings.workflows.length === 0) return;
      const started = runs().work({
        ...settings,
        ...defined({ observer: settings.observer && logsDropped(settings.observer, log) }),
      });
      worker = started;
      let isPaused = false;
      unfollow = restore.follow("runs", (isOpen) => {
        if (!isOpen) started.pause();
        else if (isPaused) started.resume();
        isPaused = !isOpen;
      });
    },
    watch(settings) {
      watcher = runs().watch(settings);
    },
    schedule(schedules) {
      if (schedules.length > 0) scheduler = runs().schedule(schedules);
    },
    stop: (options) => end(worker?.stop(options)),
    kill: () => end(worker?.kill()),
    close: async () => await opened?.close(),
  };
}

/** Logs what `dropped` reports. */
function logsDropped(observer: RunObserver, log: Log): RunObserver {
  return {
    executionEnded: (workflow, execution) => observer.executionEnded(workflow, execution),
    recorded: (workflow, step) => observer.recorded(workflow, step),
    handedBack: (workflow) => observer.handedBack(workflow),
    dropped(workflow, runs) {
      observer.dropped(workflow, runs);
      log.warn({ workflow, runs }, "ended runs deleted before their retention");
    },
  };
}
