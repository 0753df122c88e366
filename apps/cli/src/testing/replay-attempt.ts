import type { AttemptReplay, Controller, Middleware } from "@konverge/engine";
import type { AttemptRecording } from "@konverge/records";
import { readRecording } from "../config/read-recording.ts";
import { replayWithConfig } from "../config/replay-with-config.ts";

/** The controllers to replay with; a result of `defineConfig` has them. */
export interface ReplayConfig {
  /** One of them is the controller of the recording. */
  readonly controllers: readonly Controller[];
  /** Middleware of all controllers. */
  readonly use?: readonly Middleware[];
}

/**
 * Runs the handler of a recorded attempt again, on everything that the attempt read, and compares what it writes. It makes no calls.
 * @param recording a file that `konverge object recording --save` has written, or its content
 * @throws KonvergeError `invalid_request` for another file, `unknown_controller` if the configuration lacks the controller
 */
export async function replayAttempt(
  recording: string | AttemptRecording,
  config: ReplayConfig,
): Promise<AttemptReplay> {
  const read = typeof recording === "string" ? await readRecording(recording) : recording;
  return await replayWithConfig(read, config);
}
