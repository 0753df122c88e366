import type { RunOverview, RunRef, Workflows } from "@konverge/workflow";
import type { Wait } from "../http/waits.ts";

/**
 * Returns when the run has ended, when its state differs from `lastState`, or when the wait ends. Each poll reads four
 * fields.
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
      (lastState !== undefined && lastState !== textOf(state, lastState)),
  });
}

/** Returns the state with the parts that the caller asks for: `<status>/<number of steps>[/<round>][~<last heartbeat>]`. */
function textOf({ status, steps, round, beatAtMs = 0 }: RunOverview, lastState: string): string {
  const state = `${status}/${steps}${round === undefined ? "" : `/${round}`}`;
  return lastState.includes("~") ? `${state}~${beatAtMs}` : state;
}
