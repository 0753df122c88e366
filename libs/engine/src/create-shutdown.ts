import { ensureError } from "@konverge/core";
import type { Log } from "./define/log.ts";

/** Longest shutdown after the grace, in ms. The manifests give a pod ten seconds; SIGKILL would leave no report. */
const BEYOND_GRACE_MS = 6_000;
/** Longest step of it, in ms: enough for a Lease on a slow API server, with time left for the other steps. */
const STEP_MS = 3_000;

/** Releases the resources of a worker in bounded time. Resources that are not released in time are logged. */
export interface Shutdown {
  /** Starts the shutdown, which ends at most about 6 s after `graceMs`. Another call can only shorten it. */
  begin(graceMs: number): void;
  /**
   * Never rejects: a resource that cannot be released must not block the others.
   * @param run gets a signal that is aborted when the step is over
   */
  step(what: string, run: (signal: AbortSignal) => Promise<void>): Promise<void>;
}

export function createShutdown(
  log: Log,
  { beyondGraceMs = BEYOND_GRACE_MS, stepMs = STEP_MS, clock = () => performance.now() } = {},
): Shutdown {
  let endsAtMs = Infinity;
  return {
    begin(graceMs) {
      endsAtMs = Math.min(endsAtMs, clock() + graceMs + beyondGraceMs);
    },
    async step(what, run) {
      const waitMs = Math.ceil(Math.max(0, Math.min(stepMs, endsAtMs - clock())));
      const late = new AbortController();
      const tooLate = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        const error = new Error(`no response within ${waitMs} ms`);
        tooLate.reject(error);
        late.abort(error);
      }, waitMs);
      try {
        await Promise.race([run(late.signal), tooLate.promise]);
      } catch (error) {
        log.warn({ what, reason: ensureError(error).message }, "resource not released at shutdown");
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
