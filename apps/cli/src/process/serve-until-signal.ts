import { setTimeout } from "node:timers/promises";
import { exitCodeOf, untilSignal } from "./until-signal.ts";

export interface Served {
  stop(): Promise<void>;
  /** Called at a second signal. Default: that one ends the process. */
  kill?(): Promise<void>;
}

/** Time that a start may still take after a signal, in ms. */
const END_OF_START_MS = 5_000;

/**
 * Serves until SIGINT or SIGTERM, then stops. A signal during the start aborts the given one, which ends the waits of the start. If
 * the start does not succeed soon after it, the process ends. As PID 1 of a container, a process ignores signals without a listener.
 */
export async function serveUntilSignal(
  start: (stopping: AbortSignal) => Promise<Served>,
): Promise<void> {
  const stopping = new AbortController();
  let served: Served | undefined;
  const received = untilSignal((signal) => {
    if (served?.kill === undefined) process.exit(exitCodeOf(signal));
    void served.kill();
  });
  const run = async () => {
    served = await start(stopping.signal);
  };
  const starting = run();
  const early = await Promise.race([starting, received]);
  if (early !== undefined) {
    stopping.abort(new Error(early));
    const ended = starting.catch((error: unknown) => {
      if (error !== stopping.signal.reason) throw error;
    });
    await Promise.race([ended, setTimeout(END_OF_START_MS, undefined, { ref: false })]);
    if (served === undefined) process.exit(exitCodeOf(early));
  }
  await received;
  await served?.stop();
}
