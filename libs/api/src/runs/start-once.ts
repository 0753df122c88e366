import { showEncoded } from "@konverge/core";
import type { StartedRun } from "@konverge/workflow";
import { digest } from "../access/digest.ts";

/** The lifetime of a stored response. */
const SAME_REQUEST_MS = 24 * 3_600_000;
const ID_CHARS = 32;

/**
 * Starts a run with an ID derived from the request. A repeated request therefore finds its run even if the process died
 * before it stored the response. After a day, the same request starts a new run.
 * @param request caller, Idempotency-Key and body
 */
export async function startOnce(
  request: readonly unknown[],
  start: (id: string) => Promise<StartedRun>,
): Promise<StartedRun> {
  for (let before = ""; ;) {
    // A repeated call may encode its input again, to another text.
    const id = digest(showEncoded(JSON.stringify([...request, before])))
      .toString("hex")
      .slice(0, ID_CHARS);
    const { createdAtMs, ...started } = await start(id);
    // Another run has the key, or this call created the run.
    if (started.id !== id || createdAtMs === undefined) return started;
    if (Date.now() - createdAtMs < SAME_REQUEST_MS) return { id, created: true };
    before = String(createdAtMs);
  }
}
