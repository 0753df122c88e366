import { createControllerRegistry, type AnnouncedController } from "@konverge/queue";
import { patiently } from "../../support/patient.ts";

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
  { url, prefix }: { readonly url: string; readonly prefix: string },
  controllers: readonly AnnouncedController[] = [NODE_POOL],
): Promise<void> {
  const registry = createControllerRegistry({ redis: { url }, cluster: "default", prefix });
  await patiently(() => registry.announce(controllers));
  await registry.close();
}
