import {
  createControllerRegistry,
  type AnnouncedController,
  type ControllerRegistry,
  type RedisTarget,
} from "@konverge/queue";
import { openWorkflows, type Workflows, type WorkflowsOptions } from "@konverge/workflow";
import { onTestFinished } from "vitest";

/** A controller as its workers announce it. */
export const NODE_POOL = {
  name: "node-pool",
  cluster: "default",
  group: "demo.konverge.dev",
  version: "v1",
  kind: "NodePool",
  resource: "nodepools",
  scope: "Namespaced",
} as const;

interface Installation {
  readonly target: RedisTarget;
  readonly prefix: string;
}

/** Stores the announcements that a worker makes at its start. */
export async function announce(
  { target: redis, prefix }: Installation,
  controllers: readonly AnnouncedController[] = [NODE_POOL],
  workflows: Parameters<ControllerRegistry["announce"]>[1] = [],
): Promise<void> {
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  await registry.announce(controllers, workflows);
  await registry.close();
}

/** Announces workflows as their worker does, and opens their runs for it. Closed after the test. */
export async function openAnnounced(
  installation: Installation,
  workflows: NonNullable<Parameters<typeof announce>[2]>,
  options: Partial<WorkflowsOptions> = {},
): Promise<Workflows> {
  await announce(installation, [], workflows);
  const { target: redis, prefix } = installation;
  const runs = openWorkflows({ redis, prefix, ...options });
  onTestFinished(() => runs.close());
  return runs;
}
