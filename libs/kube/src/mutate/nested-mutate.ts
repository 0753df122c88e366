import { AsyncLocalStorage } from "node:async_hooks";
import { KonvergeError } from "@konverge/core";

/** A function passed to `mutate`, while it runs and for everything that it has started. */
interface RunningChange {
  /** The object that it changes, for messages. */
  readonly target: string;
  /** The first call of `mutate` in it. */
  nested?: KonvergeError;
}

const changes = new AsyncLocalStorage<RunningChange>();

/**
 * Runs a function passed to `mutate`.
 * @throws KonvergeError `nested_mutate` if it calls `mutate`, even if it does not await that call
 */
export async function runChange(target: string, change: () => void | Promise<void>): Promise<void> {
  const running: RunningChange = { target };
  try {
    await changes.run(running, change);
  } catch (error) {
    throw running.nested ?? error;
  }
  if (running.nested !== undefined) throw running.nested;
}

/**
 * Rejects a `mutate` that a function passed to `mutate` calls, awaited or not, or later in a timer. While the outer call holds
 * its object lane, the inner one would wait for that lane, or for one whose holder waits for the outer one.
 * @throws KonvergeError `nested_mutate` with the fix
 */
export function assertOutsideOfChanges(target: string): void {
  const outer = changes.getStore();
  if (outer === undefined) return;
  const error = new KonvergeError(
    "nested_mutate",
    outer.target === target
      ? `mutate of ${target} is called inside the function of another mutate of the same object; make all changes to the draft in one function, or call one mutate after the other`
      : `mutate of ${target} is called inside the function of the mutate of ${outer.target}; call it before or after that mutate`,
  );
  outer.nested ??= error;
  throw error;
}
