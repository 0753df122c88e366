import { ensureError, parseJson, type JsonObject } from "@konverge/core";
import { createLaneStore, type LaneStore } from "./lane-store.ts";
import type { PassedObject } from "./scripts/take-lane.ts";
import { DEFAULT_PREFIX, type RedisTarget } from "@konverge/redis";

/** An object as the last holder of its lane left it; never older than 2 s. */
type Carried = JsonObject;

/** A writer's turn: nobody else of the fleet writes to the object until it is left, as long as all take turns. */
export interface LaneHold {
  readonly carried: Carried | undefined;
  /** How long the turn was waited for, in ms. */
  readonly waitedMs: number;
  /**
   * Lets the next one in, with the object as it is now known to be; undefined when that is not known. `stranger`: somebody
   * who takes no turns was seen to write it, so that only the latest knowledge is worth a try for some seconds.
   */
  leave(carry?: Carried, options?: { readonly stranger?: boolean }): void;
}

/**
 * The turn-taking of all writers of an object, over processes. It saves the API server a fight; that writes do not overwrite
 * each other is held by their preconditions, with or without it.
 */
export interface ObjectLanes {
  /** Waits for its turn. Without Redis it waits for the writers of this process only. @throws the signal's reason */
  enter(lane: string, signal?: AbortSignal): Promise<LaneHold>;
  close(): void;
}

export interface ObjectLanesOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  /** Default `konverge`. */
  readonly prefix?: string;
  /** Unique per process. */
  readonly processId: string;
  readonly onError: (error: Error) => void;
  /** How long a process that says nothing keeps a lane, in ms. Default 2 s. */
  readonly holdMs?: number;
}

const HOLD_MS = 2_000;
/** An object that nobody of ours wrote for so long is read again. */
const CARRY_MS = 2_000;
/** Where strangers write too, a try that loses costs as much as the read that it saves when it wins. */
const CONTESTED_CARRY_MS = 20;
const STRANGER_MS = 5_000;
/** Turns that a process takes one after the other, and for how long, before it lets another process in. */
const TURNS_IN_A_ROW = 16;
const IN_A_ROW_MS = 50;
/** Longer ones cost Redis more than a read costs the API server. */
const MAX_CARRY_CHARS = 64 * 1024;

interface Waiter {
  readonly enter: () => void;
}

interface Lane {
  readonly name: string;
  readonly waiting: Waiter[];
  phase: "asking" | "held" | "leaving";
  /** A question is under way. */
  isAsking: boolean;
  askAgain: boolean;
  carry: { readonly object: Carried; readonly atMs: number } | undefined;
  stranger: boolean;
  heldSinceMs: number;
  turns: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export function createObjectLanes(options: ObjectLanesOptions): ObjectLanes {
  const { holdMs = HOLD_MS, onError } = options;
  const lanes = new Map<string, Lane>();
  const store: LaneStore = createLaneStore({
    redis: options.redis,
    prefix: options.prefix ?? DEFAULT_PREFIX,
    cluster: options.cluster,
    processId: options.processId,
    holdMs,
    carryMs: CARRY_MS,
    contestedCarryMs: CONTESTED_CARRY_MS,
    strangerMs: STRANGER_MS,
    onHanded: (name) => {
      const lane = lanes.get(name);
      if (lane?.phase === "asking") ask(lane);
    },
    onError,
  });

  /** Once more whenever it may help: when told, and when the holder's time is up. */
  function ask(lane: Lane): void {
    clearTimeout(lane.timer);
    // One at a time, or the second would take the lane after the first has left it.
    if (lane.isAsking) {
      lane.askAgain = true;
      return;
    }
    void takeOnce(lane);
  }

  async function takeOnce(lane: Lane): Promise<void> {
    lane.isAsking = true;
    lane.askAgain = false;
    try {
      const answer = await store.take(lane.name);
      lane.isAsking = false;
      if (answer.kind === "held") {
        begin(lane, answer.carry);
      } else if (lane.askAgain) {
        ask(lane);
      } else {
        lane.timer = setTimeout(() => ask(lane), answer.kind === "wait" ? answer.ms + 1 : 0);
      }
    } catch (error) {
      lane.isAsking = false;
      onError(ensureError(error));
      // To take turns is worth a lot, but not the work itself.
      begin(lane, undefined);
    }
  }

  function begin(lane: Lane, carry: PassedObject | undefined): void {
    clearTimeout(lane.timer);
    lane.phase = "held";
    lane.turns = 0;
    lane.stranger = false;
    lane.heldSinceMs = performance.now();
    lane.carry =
      carry === undefined
        ? undefined
        : { object: parseJson(carry.text) as Carried, atMs: lane.heldSinceMs - carry.ageMs };
    lane.timer = setInterval(() => {
      store.renew(lane.name).catch((error: unknown) => onError(ensureError(error)));
    }, holdMs / 3);
    advance(lane);
  }

  function advance(lane: Lane): void {
    const tired =
      lane.turns >= TURNS_IN_A_ROW || performance.now() - lane.heldSinceMs >= IN_A_ROW_MS;
    const next = lane.turns > 0 && tired ? undefined : lane.waiting.shift();
    if (next === undefined) {
      void release(lane);
      return;
    }
    lane.turns += 1;
    next.enter();
  }

  async function release(lane: Lane): Promise<void> {
    clearTimeout(lane.timer);
    const left = { carry: carryText(lane), stranger: lane.stranger };
    lane.carry = undefined;
    lane.phase = "leaving";
    try {
      await store.leave(lane.name, left);
    } catch (error) {
      onError(ensureError(error));
    }
    // Only now: a question that overtook it would be answered with the lane that is about to be left.
    if (lane.waiting.length === 0) {
      lanes.delete(lane.name);
    } else {
      lane.phase = "asking";
      ask(lane);
    }
  }

  function freshCarry(lane: Lane): Carried | undefined {
    const longestMs = lane.stranger ? CONTESTED_CARRY_MS : CARRY_MS;
    if (lane.carry === undefined || performance.now() - lane.carry.atMs > longestMs)
      return undefined;
    return lane.carry.object;
  }

  return {
    enter(name, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
          reject(signal.reason);
          return;
        }
        const fromMs = performance.now();
        let lane = lanes.get(name);
        const isNew = lane === undefined;
        lane ??= {
          name,
          waiting: [],
          phase: "asking",
          isAsking: false,
          askAgain: false,
          carry: undefined,
          stranger: false,
          heldSinceMs: 0,
          turns: 0,
          timer: undefined,
        };
        const own = lane;
        lanes.set(name, own);
        const waiter: Waiter = {
          enter() {
            signal?.removeEventListener("abort", onAbort);
            let left = false;
            resolve({
              carried: freshCarry(own),
              waitedMs: performance.now() - fromMs,
              leave(carry, { stranger = false } = {}) {
                if (left) return;
                left = true;
                own.stranger ||= stranger;
                own.carry =
                  carry === undefined ? undefined : { object: carry, atMs: performance.now() };
                advance(own);
              },
            });
          },
        };
        const onAbort = () => {
          // Whoever asks for the lane finds out that nobody waits for it any more, and leaves it.
          own.waiting.splice(own.waiting.indexOf(waiter), 1);
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        own.waiting.push(waiter);
        if (isNew) ask(own);
      });
    },
    close() {
      for (const lane of lanes.values()) clearTimeout(lane.timer);
      store.close();
    },
  };
}

function carryText(lane: Lane): PassedObject | undefined {
  if (lane.carry === undefined) return undefined;
  const text = JSON.stringify(lane.carry.object);
  if (text.length > MAX_CARRY_CHARS) return undefined;
  return { text, ageMs: Math.max(0, Math.round(performance.now() - lane.carry.atMs)) };
}
