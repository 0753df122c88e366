/** Who may use a connection: a call takes its slot before its token, so that a token never waits for a connection. */
export interface ConnectionSlots {
  /** Resolves in order of asking. @throws the signal's reason when aborted first. */
  take(signal?: AbortSignal): Promise<void> | undefined;
  give(): void;
}

/** `slots` calls at once; the others wait in line. Returns undefined from `take` when there is nothing to wait for. */
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
