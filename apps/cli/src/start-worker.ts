import {
  startWorker as startWithVersion,
  type RunningWorker,
  type WorkerOptions,
} from "@konverge/worker";
import { readVersion } from "./process/version.ts";

/** {@inheritDoc startWithVersion} */
export function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  return startWithVersion({ version: readVersion(), ...options });
}
