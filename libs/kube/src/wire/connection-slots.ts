/** Slots for connections. A call takes its slot before its token, so that a token never waits for a connection. */
export interface ConnectionSlots {
  /** Resolves in FIFO order. @throws the signal's reason if aborted first */
  take(signal?: AbortSignal): Promise<void> | undefined;
  give(): void;
}

/** Allows `slots` concurrent calls; others wait in order. `take` returns undefined if there is no need to wait. */
export function createConnectionSlots(slots: number): ConnectionSlots {
  let free = slots;
  const waiting = new Set<() => void>();
  return {
    take(signal) {
      signal?.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return undefined;
      }
      return new Promise<void>((resolve, reject) => {
        const onAbort = () => {
          waiting.delete(grant);
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
          reject(signal?.reason);
        };
        const grant = () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        };
        waiting.add(grant);
        signal?.addEventListener("abort", onAbort, { once: true });
      });
    },
    give() {
      const [next] = waiting;
      if (next === undefined) {
        free += 1;
      } else {
        waiting.delete(next);
        next();
      }
    },
  };
}
