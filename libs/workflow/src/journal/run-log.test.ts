import { sleepMs } from "@konverge/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { seededRandom } from "../../../../apps/demo/src/load/seeded-random.ts";
import { RunLog } from "./run-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("all lines are in the store at the end, in order, however long each store takes", async () => {
  const random = seededRandom(11);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 100; round += 1) {
    const stored: string[] = [];
    const log = new RunLog({
      logged: 0,
      nowMs: () => Date.now(),
      append: async (lines) => {
        await sleepMs(below(2_500));
        stored.push(...lines.map(({ message }) => message));
      },
      scrub: (text) => text,
      onLine: () => undefined,
    });
    const logger = log.logger(() => undefined);
    const lines = Array.from({ length: 1 + below(20) }, (_, line) => `line ${line}`);
    const execution = (async () => {
      for (const line of lines) {
        logger.info({}, line);
        if (random() < 0.7) await sleepMs(below(2_000));
        if (random() < 0.1) void log.store();
      }
      await log.store();
      return [...stored];
    })();
    await vi.advanceTimersByTimeAsync(100_000);
    expect(await execution, `round ${round}`).toEqual(lines);
  }
});
