import { KonvergeError, toMs, type Duration } from "@konverge/core";
import type { RunJournal } from "../journal/run-journal.ts";
import type { Advance } from "./advance.ts";
import { valueOf, type VerbReplay } from "./verb-replay.ts";

/** Waits a duration after the first call. */
export async function sleep(replay: VerbReplay, name: string, duration: Duration): Promise<void> {
  const sleepMs = toMs(duration, `the duration of sleep "${name}"`);
  await sleepFor(replay, name, () => sleepMs);
}

/** Waits until a time; that of the first call counts. @throws KonvergeError `invalid_config` */
export async function sleepUntil(
  replay: VerbReplay,
  name: string,
  time: Date | number,
): Promise<void> {
  const untilMs = new Date(time).getTime();
  if (Number.isNaN(untilMs)) {
    throw new KonvergeError(
      "invalid_config",
      `the time of sleepUntil "${name}" is not a time; pass a Date or epoch ms`,
    );
  }
  await sleepFor(replay, name, (nowMs) => Math.max(0, untilMs - nowMs));
}

async function sleepFor(
  replay: VerbReplay,
  name: string,
  sleepMsAt: (nowMs: number) => number,
): Promise<void> {
  const { journal } = replay;
  await replay.exclusively(name, async (key) => {
    const end = () => awaitTime(journal, key, sleepMsAt);
    valueOf(key, await replay.settle(key, "sleep", end));
  });
}

/** Records the end of a sleep, so that its place among other records is the same in every execution. */
async function awaitTime(
  journal: RunJournal,
  key: string,
  sleepMsAt: (nowMs: number) => number,
): Promise<Advance> {
  const cancelled = await journal.throwCancel(key, "sleep");
  if (cancelled !== undefined) return cancelled;
  const { untilMs } =
    journal.progressOf(key) ??
    (await journal.note(key, { attempts: 0, delayMs: sleepMsAt(journal.nowMs()), keep: true }));
  if (untilMs > journal.nowMs()) return { waitUntilMs: untilMs };
  return await journal.commit(key, { kind: "sleep", untilMs });
}
