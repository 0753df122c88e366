import { KonvergeError } from "@konverge/core";
import type { LocalStack } from "@konverge/local-stack";
import { Autoscaler, Machine, NodePool } from "./kinds.ts";
import { replicasFor, type LoadStep } from "./load-plan.ts";
import { isConverged } from "./lost-updates.ts";
import { pollUntil } from "../stage/poll-until.ts";
import type { World } from "./world.ts";

interface Agreement {
  readonly pools: readonly string[];
  readonly step: LoadStep;
  readonly deadlineMs: number;
}

/** Waits until all pools, autoscalers and machines are as the load requires; returns the time it took, in ms. */
export async function waitForAgreement(
  {
    stack,
    world,
    signal,
  }: { readonly stack: LocalStack; readonly world: World; readonly signal: AbortSignal },
  { pools, step, deadlineMs }: Agreement,
): Promise<number | undefined> {
  const { client } = stack;
  const { namespace } = world;
  const startedMs = performance.now();
  const check = async () => {
    const [found, scalers, machines] = await Promise.all([
      client.list(NodePool, { namespace }),
      client.list(Autoscaler, { namespace }),
      client.list(Machine, { namespace }),
    ]);
    const counts = new Map<string, number>();
    for (const { metadata } of machines.items) {
      const owner = metadata.ownerReferences?.[0]?.name ?? "";
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    return (
      found.items.length === pools.length &&
      isConverged({ pools: found.items, scalers: scalers.items, machines: counts }, (pool) =>
        replicasFor(Number(step.loads[pool] ?? 0)),
      )
    );
  };
  try {
    await pollUntil("all controllers agree", check, { signal, deadlineMs, everyMs: 100 });
    return Math.round(performance.now() - startedMs);
  } catch (error) {
    if (error instanceof KonvergeError && error.code === "demo_failed") return undefined;
    throw error;
  }
}
