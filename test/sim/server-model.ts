import type { CallResult } from "@konverge/core";
import type { VirtualClock } from "./virtual-clock.ts";

/**
 * A server with seats: a call takes one for an exponential time, or waits in a queue; a full queue rejects it. The work of an
 * aborted call is still done, which prolongs an overload.
 */
export interface ServerModel {
  /** Sends one call; `done` is called within the deadline. */
  send(deadlineMs: number, done: (result: CallResult) => void): void;
  /** Changes the number of seats; 0 stops everything. */
  setSeats(seats: number): void;
  /** Arrived calls, and calls that succeeded in time, by second. */
  readonly sent: readonly number[];
  readonly good: readonly number[];
}

export interface ServerModelOptions {
  readonly clock: VirtualClock;
  readonly random: () => number;
  readonly seats: number;
  readonly serviceMs: number;
  readonly line: number;
}

const REFUSED_AFTER_MS = 2;

export function createServerModel({ clock, random, ...options }: ServerModelOptions): ServerModel {
  const sent: number[] = [];
  const good: number[] = [];
  const line: (() => void)[] = [];
  let { seats } = options;
  let busy = 0;
  const count = (seconds: number[]) => {
    const second = Math.floor(clock.nowMs / 1_000);
    seconds[second] = (seconds[second] ?? 0) + 1;
  };
  const seatNext = () => {
    while (busy < seats) {
      const next = line.shift();
      if (next === undefined) return;
      busy += 1;
      clock.schedule(-Math.log(1 - random()) * options.serviceMs, () => {
        busy -= 1;
        next();
        seatNext();
      });
    }
  };
  return {
    sent,
    good,
    setSeats(next) {
      seats = next;
      seatNext();
    },
    send(deadlineMs, done) {
      count(sent);
      if (line.length >= options.line) {
        clock.schedule(REFUSED_AFTER_MS, () => done({ kind: "response", status: 503 }));
        return;
      }
      let isOver = false;
      const cancel = clock.schedule(deadlineMs, () => {
        isOver = true;
        done({ kind: "timeout" });
      });
      line.push(() => {
        if (isOver) return;
        cancel();
        count(good);
        done({ kind: "response", status: 200 });
      });
      seatNext();
    },
  };
}
