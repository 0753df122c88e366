import { afterEach } from "vitest";
import {
  openWorkflows,
  type AnyWorkflow,
  type RunView,
  type Workflows,
  type WorkflowsOptions,
} from "@konverge/workflow";
import { useQueues, type QueueHarness } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

export interface WorkflowHarness extends QueueHarness {
  openRuns(options?: Partial<WorkflowsOptions>): Workflows;
  readonly errors: Error[];
}

/** Opens workflows on a real Redis, with one prefix per test, and closes them afterwards. */
export function useWorkflows(): WorkflowHarness {
  const opened = new Set<Workflows>();
  const errors: Error[] = [];
  // The queues' harness deletes the names; hooks run in reverse order, so this one comes first.
  const queues = useQueues();
  afterEach(async () => {
    await Promise.all([...opened].map((workflows) => workflows.close()));
    opened.clear();
    errors.length = 0;
  });
  return Object.defineProperties({} as WorkflowHarness, {
    ...Object.getOwnPropertyDescriptors(queues),
    errors: { value: errors },
    openRuns: {
      value: (options: Partial<WorkflowsOptions> = {}) => {
        const workflows = openWorkflows({
          redis: queues.target,
          prefix: queues.prefix,
          leaseMs: 20_000,
          onError: (error) => errors.push(error),
          ...options,
        });
        opened.add(workflows);
        return workflows;
      },
    },
  });
}

export async function ended(
  workflows: Workflows,
  workflow: AnyWorkflow,
  id: string,
): Promise<RunView> {
  return await until(`run ${id} ends`, async () => {
    const run = await workflows.get({ workflow: workflow.name, id });
    return run?.endedAtMs === undefined ? undefined : run;
  });
}

export async function inStatus(
  workflows: Workflows,
  workflow: AnyWorkflow,
  id: string,
  status: RunView["status"],
): Promise<RunView> {
  return await until(`run ${id} is ${status}`, async () => {
    const run = await workflows.get({ workflow: workflow.name, id });
    return run?.status === status ? run : undefined;
  });
}
