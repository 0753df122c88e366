import {
  createControllerRegistry,
  type AnnouncedController,
  type RedisTarget,
} from "@konverge/queue";

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

/** Stores the announcements that a worker makes at its start. */
export async function announce(
  { target: redis, prefix }: { readonly target: RedisTarget; readonly prefix: string },
  controllers: readonly AnnouncedController[] = [NODE_POOL],
): Promise<void> {
  const registry = createControllerRegistry({ redis, cluster: "default", prefix });
  await registry.announce(controllers);
  await registry.close();
}
