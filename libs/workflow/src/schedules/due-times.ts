import { createHash } from "node:crypto";
import type { ScheduleTimes } from "./schedule-times.ts";

/** When a schedule starts its runs. */
export interface DueOptions {
  readonly name: string;
  readonly times: ScheduleTimes;
  /** How long after its time a run is still started. Default: only the last time is, whatever its age. */
  readonly catchUpMs?: number;
  /** Longest delay of a start. Default 0. */
  readonly jitterMs?: number;
}

/** Most times to start in one round. */
const MAX_DUE = 100;

/**
 * Returns the times to start now, oldest first, and when to look again.
 * @param doneMs all times up to this one are handled
 */
export function dueTimes(
  { name, times, catchUpMs, jitterMs = 0 }: DueOptions,
  { doneMs, nowMs }: { readonly doneMs: number; readonly nowMs: number },
): { readonly due: readonly number[]; readonly nextMs: number } {
  // A delay ends before the next time, so that the times keep their order.
  const startMsOf = (atMs: number) =>
    jitterMs === 0
      ? atMs
      : atMs + Math.floor(Math.min(jitterMs, times.next(atMs) - atMs) * fractionOf(name, atMs));
  const newest = times.last(nowMs);
  const isDue = startMsOf(newest) <= nowMs;
  const last = isDue ? newest : times.last(newest - 1);
  const nextMs = startMsOf(isDue ? times.next(newest) : newest);
  if (last <= doneMs) return { due: [], nextMs };
  if (catchUpMs === undefined) return { due: [last], nextMs };
  const due: number[] = [];
  const fromMs = Math.max(doneMs, nowMs - catchUpMs - jitterMs - 1);
  for (let atMs = times.next(fromMs); atMs <= last; atMs = times.next(atMs)) {
    if (due.length === MAX_DUE) return { due, nextMs: nowMs };
    if (startMsOf(atMs) >= nowMs - catchUpMs) due.push(atMs);
  }
  return { due, nextMs };
}

/** Returns a number from 0 up to 1 that is the same in all processes, and differs between schedules and times. */
function fractionOf(name: string, atMs: number): number {
  return createHash("sha256").update(`${name} ${atMs}`).digest().readUInt32BE() / 2 ** 32;
}
