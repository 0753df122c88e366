import type { ReconcileState } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import type { Context } from "hono";
import type { Wait } from "../http/waits.ts";
import { pauseView } from "./key-item.ts";

const MAX_WAIT_MS = 60_000;

/** Returns the state when the request or the wait ends. */
export async function waitForEnd(
  queue: WorkQueue,
  id: string,
  wait: Wait,
): Promise<ReconcileState> {
  const { paused, ...state } = await wait.until({
    id: `request ${id}`,
    read: () => queue.getRequest(id),
    isEnd: ({ phase }) => phase === "finished",
  });
  return paused === undefined ? state : { ...state, paused: pauseView(paused) };
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
