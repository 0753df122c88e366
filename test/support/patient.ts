import { isKonvergeError } from "@konverge/core";

const LONGEST_MS = 30_000;

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

/** As {@link patiently}, for a read over HTTP. */
export async function readPatiently(read: () => Promise<Response>): Promise<Response> {
  for (const endMs = performance.now() + LONGEST_MS; ;) {
    const response = await read();
    if (response.status !== 503 || performance.now() > endMs) return response;
    const { code } = (await response.clone().json()) as { readonly code?: string };
    if (code !== "redis_unavailable") return response;
  }
}
