import { until } from "./until.ts";

/** The longest time without progress in ms, after which the work counts as hanging. */
const STILL_MS = 300_000;

/**
 * Polls like `until`, for work whose duration depends on the machine. The deadline begins again with each change of `progress`,
 * a count of the work that has ended.
 * @throws Error if the count did not change for `stillMs`
 */
export async function untilDone(
  what: string,
  probe: () => boolean | Promise<boolean>,
  { progress, stillMs = STILL_MS }: { readonly progress: () => number; readonly stillMs?: number },
): Promise<void> {
  let isDone = false;
  while (!isDone) {
    const before = progress();
    await until(
      what,
      async () => {
        isDone = await probe();
        return isDone || progress() !== before;
      },
      stillMs,
    );
  }
}
