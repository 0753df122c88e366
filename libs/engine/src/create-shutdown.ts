import { ensureError } from "@konverge/core";
import type { Log } from "./define/log.ts";

/** What a stop may take beyond its grace, in ms. The manifests give a pod ten seconds, and SIGKILL would tell nobody anything. */
const BEYOND_GRACE_MS = 6_000;
/** What one thing may take of that, in ms: a Lease behind a slow API server, and still some time for the others. */
const STEP_MS = 3_000;

/** How a worker lets go of what it holds: what does not answer is waited for so long and no longer, and named in the log. */
export interface Shutdown {
  /** The stop has begun, and ends about 6 s behind `graceMs` at the latest. Called again, it can only end sooner. */
  begin(graceMs: number): void;
  /**
   * Never rejects: what could not be released must not keep the rest from it.
   * @param run is told by its signal that nobody waits any longer
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
        const error = new Error(`no answer within ${waitMs} ms`);
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
