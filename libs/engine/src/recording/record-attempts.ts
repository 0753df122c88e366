import { ensureError } from "@konverge/core";
import type { RecordingStore } from "@konverge/queue";
import { Attempt, type ControllerRuntime } from "../access/attempt.ts";
import type { RunLease } from "../attempt/attempt-handler.ts";
import type { LoopWatch } from "../attempt/loop-watch.ts";
import { runAttempt } from "../attempt/run-attempt.ts";
import { AttemptRecorder } from "./attempt-recorder.ts";
import { buildRecording } from "./build-recording.ts";

export interface RecordingParts {
  readonly runtime: ControllerRuntime;
  readonly loop: LoopWatch;
  readonly recordings: RecordingStore;
}

/** Returns a function that runs an attempt and stores what it has read and written. */
export function createRecordedRun({ runtime, loop, recordings }: RecordingParts): RunLease {
  return async (lease, options) => {
    const tape = new AttemptRecorder();
    const run = await runAttempt(
      new Attempt(lease, tape.runtime(runtime), { ...options, tape }),
      loop,
    );
    const { controller, client } = runtime;
    const recording = buildRecording(lease, run, tape, { controller: controller.name, client });
    try {
      await recordings.store(lease.id, lease.epoch, JSON.stringify(recording));
    } catch (error) {
      // The attempt itself has ended as it should.
      options.log.warn({ err: ensureError(error) }, "attempt recording not stored");
    }
    return run;
  };
}
