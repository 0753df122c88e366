import { admit, newGuardState } from "./model/admit.ts";
import { type AdmitRequest, type BreakerMode, type GuardLimits } from "@konverge/core";
import { type GuardState } from "./model/guard-state.ts";
import type { StoreAnswer } from "../../libs/guard/src/scripts/admit.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** A transition of the breaker, in true time. */
export interface Move {
  readonly atMs: number;
  readonly from: BreakerMode;
  readonly to: BreakerMode;
  readonly generation: number;
  readonly untilMs: number;
  readonly reason: string | undefined;
}

/** A guard's state in a Redis with clock steps and data losses. The reference model replaces the script. */
export interface VirtualRedis {
  readonly state: GuardState | undefined;
  readonly runId: string;
  /** The clock of Redis minus true time, in us. */
  offsetUs: number;
  /** False while Redis does not respond. */
  isUp: boolean;
  readonly moves: readonly Move[];
  admit(ask: AdmitRequest): StoreAnswer;
  configure(isLoss?: boolean): void;
  lose(): void;
  /** Switches to another process, with an earlier state. */
  failOver(state: GuardState | undefined): void;
}

const EPOCH_US = 1.8e15;

export function createVirtualRedis(
  clock: VirtualClock,
  limits: GuardLimits,
  onMove: (move: Move) => void,
): VirtualRedis {
  const moves: Move[] = [];
  let state: GuardState | undefined;
  let runs = 1;
  const redis: VirtualRedis = {
    offsetUs: EPOCH_US,
    isUp: true,
    moves,
    get state() {
      return state;
    },
    get runId() {
      return `run-${runs}`;
    },
    admit(ask) {
      if (state === undefined) return { kind: "unset" };
      const nowUs = Math.floor(clock.nowMs * 1_000) + redis.offsetUs;
      const before = state;
      const { state: after, answer, opened } = admit(before, ask, limits, nowUs);
      state = after;
      if (after.mode !== before.mode) {
        const waitMs = Math.max(0, after.untilUs - after.lastUs) / 1_000;
        const { generation, mode: to } = after;
        const atMs = clock.nowMs;
        const move = {
          atMs,
          from: before.mode,
          to,
          generation,
          untilMs: atMs + waitMs,
          reason: opened,
        };
        moves.push(move);
        onMove(move);
      }
      return { kind: "answer", ...answer, revision: 1 };
    },
    configure(isLoss = false) {
      const timeUs = Math.floor(clock.nowMs * 1_000) + redis.offsetUs;
      state ??= newGuardState(limits, timeUs, "", isLoss);
    },
    lose() {
      state = undefined;
    },
    failOver(kept) {
      runs += 1;
      state = kept;
    },
  };
  return redis;
}
