import type { Log } from "@konverge/engine";
import {
  openWorkflows,
  type RunWorkerSettings,
  type WaitWatcherSettings,
  type Workflows,
  type WorkflowsOptions,
} from "@konverge/workflow";

export interface RunWorkflowsOptions extends RunWorkerSettings {
  readonly queues: Omit<WorkflowsOptions, "onError" | "onWarning">;
  readonly log: Log;
  /** Present when this process may be the one that watches what runs wait for. */
  readonly watch?: WaitWatcherSettings;
}

export interface WorkflowRunner {
  /** Takes no run any more, waits for running activations up to `graceMs`, aborts the rest, closes its connections. */
  stop(options: { readonly graceMs: number }): Promise<void>;
  /** As `stop`, or in the middle of one, but aborts at once; the runs go on elsewhere. */
  kill(): Promise<void>;
}

/** Goes on with runs of the workflows, and watches for them. With nothing to do it opens no connection. */
export function runWorkflows({ queues, log, watch, ...work }: RunWorkflowsOptions): WorkflowRunner {
  if (work.workflows.length === 0 && watch === undefined) {
    return { stop: async () => {}, kill: async () => {} };
  }
  const workflows: Workflows = openWorkflows({
    ...queues,
    onError: (error) => log.warn({ err: error }, "workflow error"),
    onWarning: ({ workflow, id }, { code, message: detail }) =>
      log.warn({ workflow, run: id, code, detail }, "workflow run nears a bound"),
  });
  const worker = work.workflows.length === 0 ? undefined : workflows.work(work);
  const watcher = watch === undefined ? undefined : workflows.watch(watch);
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= workflows.close());
  return {
    async stop(options) {
      await watcher?.stop();
      await worker?.stop(options);
      await close();
    },
    async kill() {
      await worker?.kill();
      await close();
    },
  };
}
