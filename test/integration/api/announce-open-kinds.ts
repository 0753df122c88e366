import type { OpenKind } from "@konverge/mutations";
import type { QueueHarness } from "../queue/queue-harness.ts";

export const WIDGET: OpenKind = {
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Widget",
  resource: "widgets",
  scope: "Namespaced",
};
export const PLANET: OpenKind = {
  ...WIDGET,
  kind: "Planet",
  resource: "planets",
  scope: "Cluster",
};

/** Announces the kinds that mutations may change, as workers do. */
export async function announceOpenKinds(
  { redis, prefix }: Pick<QueueHarness, "redis" | "prefix">,
  kinds: readonly OpenKind[],
  cluster = "default",
): Promise<void> {
  for (const kind of kinds) {
    const name = `${kind.resource}.${kind.group}`;
    const text = `${Date.now()} ${JSON.stringify(kind)}`;
    await redis.hset(`${prefix}:{${cluster}/mutations}/kinds`, name, text);
  }
}
