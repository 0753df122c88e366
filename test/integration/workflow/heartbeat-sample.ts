import type { Duration } from "@konverge/core";
import { defineWorkflow, type StepContext, type Workflow } from "@konverge/workflow";

export interface CopyOptions {
  readonly heartbeatTimeout?: Duration;
  readonly attempts?: number;
  /** Called after each row. */
  readonly atRow?: (row: number, ctx: StepContext) => Promise<void> | void;
}

/** Copies five rows, with a heartbeat after each, and returns where its last attempt began. */
export function makeCopy({
  heartbeatTimeout = "2s",
  attempts = 5,
  atRow = () => undefined,
}: CopyOptions): Workflow<unknown, string> {
  return defineWorkflow("copy", { version: 1 }, async (w) => {
    return await w.step(
      "copy",
      async (ctx) => {
        const from = (ctx.lastHeartbeat as { row: number } | undefined)?.row ?? 0;
        for (let row = from + 1; row <= 5; row += 1) {
          ctx.heartbeat({ row });
          await atRow(row, ctx);
        }
        return `after ${from}, attempt ${ctx.attempt}`;
      },
      { heartbeatTimeout, retry: { attempts } },
    );
  });
}
