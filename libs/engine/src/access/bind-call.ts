import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { AttemptTrace } from "./attempt-trace.ts";
import type { OpenCalls } from "./open-calls.ts";

export interface CallBinding {
  /** False once the attempt has ended: from then on every call is refused. */
  readonly isOpen: () => boolean;
  readonly openCalls: OpenCalls;
  readonly trace: AttemptTrace;
}

/** What every call of a handler passes: refused after the end, deferrals remembered even if the handler swallows them. */
export function bindCall({ isOpen, openCalls, trace }: CallBinding) {
  return async <R>(run: () => Promise<R>): Promise<R> => {
    if (!isOpen()) {
      throw new KonvergeError(
        "attempt_ended",
        "the attempt has ended; await every call before the handler returns",
      );
    }
    openCalls.begin();
    try {
      const answer = await run();
      openCalls.end();
      return answer;
    } catch (error) {
      openCalls.end({ thrown: error });
      if (isKonvergeError(error) && error.code === "deferred") trace.noteDeferred(error);
      throw error;
    }
  };
}
