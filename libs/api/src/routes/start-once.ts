import type { StartedRun } from "@konverge/workflow";
import { digest } from "../access/digest.ts";

/** As long as an answer is kept by its Idempotency-Key. */
const SAME_REQUEST_MS = 24 * 3_600_000;
const ID_CHARS = 32;

/**
 * Starts a run whose id is made of the request, so that the same request finds the run it has started although whoever served
 * it died before the answer was kept. A request that comes again after a day is another one.
 * @param request what makes it the same: caller, Idempotency-Key and body
 */
export async function startOnce(
  request: readonly unknown[],
  start: (id: string) => Promise<StartedRun>,
): Promise<StartedRun> {
  for (let before = ""; ;) {
    const id = digest(JSON.stringify([...request, before]))
      .toString("hex")
      .slice(0, ID_CHARS);
    const { createdAtMs, ...started } = await start(id);
    // Another run that holds the key, or one that was just created.
    if (started.id !== id || createdAtMs === undefined) return started;
    if (Date.now() - createdAtMs < SAME_REQUEST_MS) return { id, created: true };
    before = String(createdAtMs);
  }
}
