import type { ApiObject } from "@konverge/core";
import { defineWorkflow, type Workflow } from "@konverge/workflow";

/** Where a process stops, waits or dies: before the verb, in its change, after the write. */
export type Disturbance = "halt in body" | "wait in body" | "halt in change" | "die after write";

export const COUNTER = {
  apiVersion: "v1",
  kind: "ConfigMap",
  namespace: "default",
  name: "counter",
} as const;

interface Counter extends ApiObject {
  data?: Record<string, string>;
}

/**
 * Adds 1 to the counter in each of `steps` steps. The first one of several steps is disturbed: it reports with `tell`, and
 * waits until `released` resolves.
 */
export function makeCounting(
  disturbance: Disturbance | undefined,
  tell: (event: string) => Promise<unknown>,
  released: () => Promise<void> = async () => undefined,
): Workflow<number, number> {
  return defineWorkflow("counting", { version: 1 }, async (w, steps: number) => {
    for (let step = 1; step <= steps; step += 1) {
      const isAt = (where: Disturbance) => steps > 1 && step === 1 && disturbance === where;
      await w.step(`step ${step}`, async (k) => {
        if (isAt("halt in body")) await halt(tell);
        if (isAt("wait in body")) await released();
        try {
          await k.mutate<Counter>(COUNTER, async (draft) => {
            draft.data = { n: String(Number(draft.data?.["n"]) + 1) };
            if (isAt("halt in change")) await halt(tell);
          });
        } finally {
          if (isAt("halt in body") || isAt("halt in change")) await tell("over");
        }
        if (isAt("die after write")) process.kill(process.pid, "SIGKILL");
      });
    }
    return steps;
  });
}

/** Until the test lets the process continue. */
async function halt(tell: (event: string) => Promise<unknown>): Promise<void> {
  await tell("halting");
  process.kill(process.pid, "SIGSTOP");
}
