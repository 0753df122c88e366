import type { ReconcileState } from "@konverge/contracts";
import { KonvergeError, sleepMs } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import type { Context } from "hono";
import { pauseView } from "./key-item.ts";

const MAX_WAIT_MS = 60_000;
const POLL_MS = 100;

/** Returns the state when the request ends, the wait times out, or `signal` aborts. */
export async function waitForEnd(
  queue: WorkQueue,
  id: string,
  { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<ReconcileState> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const { paused, ...state } = await queue.getRequest(id);
    const leftMs = endMs - performance.now();
    if (state.phase === "finished" || leftMs <= 0 || signal.aborted) {
      return paused === undefined ? state : { ...state, paused: pauseView(paused) };
    }
    await sleepMs(Math.min(POLL_MS, leftMs));
  }
}

/** Parses `Prefer: wait=20` (RFC 7240) to ms; 0 without it. @throws KonvergeError `invalid_request` */
export function preferredWaitMs({ req }: Context): number {
  const preferred = req.header("prefer");
  const wait = preferred?.split(",").find((each) => /^\s*wait\b/i.test(each));
  if (wait === undefined) return 0;
  const [, seconds] = /^\s*wait\s*=\s*(\d{1,5})\s*$/i.exec(wait) ?? [];
  const waitMs = Number(seconds) * 1_000;
  if (waitMs <= MAX_WAIT_MS) return waitMs;
  const detail = `Prefer must be wait= and at most 60 seconds, such as wait=20 (got "${preferred}")`;
  throw new KonvergeError("invalid_request", detail);
}
