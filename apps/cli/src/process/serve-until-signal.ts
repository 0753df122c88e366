import { setTimeout } from "node:timers/promises";
import { exitCodeOf, untilSignal } from "./until-signal.ts";

export interface Served {
  stop(): Promise<void>;
  /** Called at a second signal. Default: that one ends the process. */
  kill?(): Promise<void>;
}

/** Longest end of a start after a signal, in ms. A start can wait for its servers for minutes. */
const END_OF_START_MS = 5_000;

/**
 * Serves until SIGINT or SIGTERM, then stops. A signal during the start also stops it, or ends the process if the start does not
 * end soon. As PID 1 of a container, a process ignores signals without a listener.
 */
export async function serveUntilSignal(start: () => Promise<Served>): Promise<void> {
  let served: Served | undefined;
  const received = untilSignal((signal) => {
    if (served?.kill === undefined) process.exit(exitCodeOf(signal));
    void served.kill();
  });
  const starting = start().then((started) => {
    served = started;
    return started;
  });
  const early = await Promise.race([starting.then(() => undefined), received]);
  if (early !== undefined) {
    await Promise.race([starting, setTimeout(END_OF_START_MS, undefined, { ref: false })]);
    if (served === undefined) process.exit(exitCodeOf(early));
  }
  const started = await starting;
  await received;
  await started.stop();
}
