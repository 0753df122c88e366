import type { RunOverview, RunRef, Workflows } from "@konverge/workflow";
import type { Wait } from "../http/waits.ts";

/**
 * Returns when the run has ended, when its `<status>/<number of steps>[/<round>]` differs from `lastState`, or when the wait ends. Each
 * poll reads two fields.
 */
export async function waitForRun(
  runs: Workflows,
  ref: RunRef,
  {
    id,
    lastState,
    wait,
  }: { readonly id: string; readonly lastState: string | undefined; readonly wait: Wait },
): Promise<void> {
  await wait.until({
    id: `run ${id}`,
    read: () => runs.peek(ref),
    isEnd: (state) =>
      state === undefined ||
      state.hasEnded ||
      (lastState !== undefined && lastState !== textOf(state)),
  });
}

function textOf({ status, steps, round }: RunOverview): string {
  return `${status}/${steps}${round === undefined ? "" : `/${round}`}`;
}
