import { defined } from "@konverge/core";
import { replayAttempt, type AttemptReplay, type Log } from "@konverge/engine";
import type { AttemptRecording } from "@konverge/records";
import { sensitiveResources, type Config } from "@konverge/worker";

/** Replays an attempt with the controllers and the middleware of a configuration. @throws as `replayAttempt` of the engine */
export async function replayWithConfig(
  recording: AttemptRecording,
  config: Pick<Config, "controllers"> & Partial<Config>,
  log?: Log,
): Promise<AttemptReplay> {
  const { controllers, use, settings } = config;
  return await replayAttempt(recording, {
    controllers,
    sensitiveResources: sensitiveResources(config),
    ...defined({ use, log, conflictRetry: settings?.conflictRetry }),
  });
}
