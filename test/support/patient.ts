import { isKonvergeError } from "@konverge/core";

const LONGEST_MS = 300_000;

/** The deadline of connections whose calls wait for Redis as long as a busy machine takes, in ms. The default is 900 ms. */
export const PATIENT_MS = 60_000;

/** Repeats an idempotent call while Redis misses its deadline of 900 ms, which happens on a busy machine. */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (const endMs = performance.now() + LONGEST_MS; ;) {
    try {
      return await call();
    } catch (error) {
      const isLate = isKonvergeError(error) && error.code === "redis_unavailable";
      if (!isLate || performance.now() > endMs) throw error;
    }
  }
}
