import { KonvergeError } from "@konverge/core";

/** Limits a call of user code, which may ignore its signal. */
export interface CallLimit {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** For the error: `list`. */
  readonly what: string;
}

/**
 * Waits for a call. Leaves no listener behind, so it can be used for each of millions of events.
 * @throws the reason of the signal, or KonvergeError `timed_out`
 */
export function within<T>(
  call: Promise<T> | T,
  { signal, timeoutMs, what }: CallLimit,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      end();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
      reject(signal.reason);
    };
    const onTimeout = () => {
      end();
      reject(new KonvergeError("timed_out", `${what} took more than ${timeoutMs} ms`));
    };
    const timer = timeoutMs === Infinity ? undefined : setTimeout(onTimeout, timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    // The call is still awaited, because its error would be unhandled.
    if (signal.aborted) onAbort();
    Promise.resolve(call).then(
      (value) => {
        end();
        return resolve(value);
      },
      (error: unknown) => {
        end();
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the error is that of the call
        reject(error);
      },
    );
  });
}
