import { defined } from "@konverge/core";
import type { RunDetail } from "@konverge/contracts";

/** An execution of a run: its worker and times, in epoch ms by Redis's clock. */
export interface Execution {
  readonly worker: string;
  /** Its worker died. */
  readonly lost: boolean;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

export interface TimelineRow {
  readonly step: string;
  readonly kind: string;
  /** Completed tries; undefined for steps without tries, such as a sleep. */
  readonly tries: number | undefined;
  /** Workers that executed it; all but the last died during it. */
  readonly workers: readonly string[];
  readonly tookMs: number;
  readonly by?: string;
  readonly failed: boolean;
}

/**
 * The steps of a run in the order of recording, each with the worker whose execution recorded it. The first step recorded
 * after a worker's death was running when the worker died, and starts where it began there.
 */
export function timelineOf(
  steps: RunDetail["steps"],
  executions: readonly Execution[],
): TimelineRow[] {
  const inOrder = executions.toSorted((a, b) => a.startedAtMs - b.startedAtMs);
  let sinceMs = inOrder[0]?.startedAtMs ?? 0;
  return steps.map(({ name, kind, startedAt, at, attempts, by, error }) => {
    const atMs = Date.parse(at);
    const died = inOrder.filter(
      ({ lost, endedAtMs }) => lost && endedAtMs > sinceMs && endedAtMs <= atMs,
    );
    const owner = inOrder.findLast(({ startedAtMs }) => startedAtMs <= atMs);
    const beganMs = startedAt === undefined ? atMs : Date.parse(startedAt);
    const fromMs = died.length > 0 ? Math.min(sinceMs, beganMs) : beganMs;
    sinceMs = atMs;
    return {
      step: name,
      kind,
      tries: attempts,
      workers: [...died, ...(owner === undefined ? [] : [owner])].map(({ worker }) => worker),
      tookMs: Math.max(0, atMs - fromMs),
      failed: error !== undefined,
      ...defined({ by }),
    };
  });
}
