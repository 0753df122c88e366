import { CALL_PRIORITIES, ensureError, type CallPriority, type JsonObject } from "@konverge/core";
import { DEFAULT_PREFIX, type RedisTarget } from "@konverge/redis";
import { Lane, CARRY_MS, CONTESTED_CARRY_MS, rankOf } from "./lane.ts";
import { createLaneStore, type LaneStore } from "./lane-store.ts";

/** The turn of a writer: no other writer that uses lanes writes to the object until the turn ends. */
export interface LaneHold {
  /** The object as the previous writer left it, at most 2 s old; undefined when it is not known. */
  readonly carried: JsonObject | undefined;
  /** Time spent waiting for the turn, in ms. */
  readonly waitedMs: number;
  /**
   * Ends the turn and passes the object as it is now known to the next writer; undefined when it is not known. `stranger`:
   * a writer outside the lane changed the object, so for some seconds only the latest version is worth reusing.
   */
  leave(carry?: JsonObject, options?: { readonly stranger?: boolean }): void;
}

interface EnterOptions {
  /** Of the writer's calls. Default `event`. */
  readonly priority?: CallPriority;
  /**
   * Called during the turn with the highest priority that waits for the lane, so that the writer's calls can inherit it: with
   * that of writers in this process at once, with that of others at the next renewal.
   */
  readonly onWanted?: (priority: CallPriority) => void;
}

/**
 * Queues all writers of an object, over all processes. It saves the API server conflicts; preconditions prevent lost
 * updates with or without it.
 */
export interface ObjectLanes {
  /** Waits for the turn. Without Redis it waits only for writers of this process. @throws the signal's reason */
  enter(lane: string, signal?: AbortSignal, options?: EnterOptions): Promise<LaneHold>;
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
  /** How long a process keeps a lane without renewing it, in ms. Default 2 s. */
  readonly holdMs?: number;
}

const HOLD_MS = 2_000;
const STRANGER_MS = 5_000;
const LAST_RANK = CALL_PRIORITIES.length - 1;

export function createObjectLanes(options: ObjectLanesOptions): ObjectLanes {
  return new ProcessLanes(options);
}

/** The lanes that writers of this process hold or wait for. */
class ProcessLanes implements ObjectLanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #store: LaneStore;
  readonly #holdMs: number;
  readonly #onError: (error: Error) => void;
  #isClosed = false;

  constructor({ holdMs = HOLD_MS, prefix = DEFAULT_PREFIX, ...options }: ObjectLanesOptions) {
    this.#holdMs = holdMs;
    this.#onError = options.onError;
    this.#store = createLaneStore({
      ...options,
      prefix,
      holdMs,
      carryMs: CARRY_MS,
      contestedCarryMs: CONTESTED_CARRY_MS,
      strangerMs: STRANGER_MS,
      onError: (error) => this.#report(error),
      onHanded: (name) => {
        const lane = this.#lanes.get(name);
        if (lane?.phase === "asking") this.#ask(lane);
      },
    });
  }

  enter(
    name: string,
    signal?: AbortSignal,
    { priority = "event", onWanted }: EnterOptions = {},
  ): Promise<LaneHold> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
        reject(signal.reason);
        return;
      }
      const fromMs = performance.now();
      const known = this.#lanes.get(name);
      const lane = known ?? new Lane(name);
      this.#lanes.set(name, lane);
      const enter = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve(this.#holdOf(lane, performance.now() - fromMs));
      };
      const onAbort = () => {
        // The process may still take the lane; it then finds no writer and releases it.
        lane.waiting.splice(lane.waiting.indexOf(writer), 1);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const writer = { priority, enter, onWanted };
      lane.waiting.push(writer);
      if (lane.phase === "held") lane.reportWanted();
      // A more urgent writer asks again, to be known to the holder.
      const isUrgent = lane.phase === "asking" && rankOf(priority) < lane.askedRank;
      if (known === undefined || isUrgent) this.#ask(lane);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#store.close();
    for (const lane of this.#lanes.values()) {
      clearTimeout(lane.timer);
      // A request in flight fails, and then its writers enter as well.
      if (lane.phase !== "asking" || lane.isAsking) continue;
      lane.begin(undefined);
      this.#advance(lane);
    }
  }

  #report(error: unknown): void {
    if (!this.#isClosed) this.#onError(ensureError(error));
  }

  #holdOf(lane: Lane, waitedMs: number): LaneHold {
    let left = false;
    return {
      carried: lane.freshCarry(),
      waitedMs,
      leave: (carry, { stranger = false } = {}) => {
        if (left) return;
        left = true;
        lane.noteWrite(carry, stranger);
        this.#advance(lane);
      },
    };
  }

  /** Tries to take the lane: when another process passes it on, and when the holder's time is over. */
  #ask(lane: Lane): void {
    clearTimeout(lane.timer);
    // One request at a time, or the second could take the lane after the first has left it.
    if (lane.isAsking) {
      lane.askAgain = true;
      return;
    }
    void this.#takeOnce(lane);
  }

  async #takeOnce(lane: Lane): Promise<void> {
    lane.isAsking = true;
    lane.askAgain = false;
    try {
      const rank = lane.waitingRank;
      lane.askedRank = rank;
      const answer = await this.#store.take(lane.name, Number.isFinite(rank) ? rank : LAST_RANK);
      lane.isAsking = false;
      if (answer.kind === "held") {
        lane.begin(answer.carry);
        this.#keep(lane);
      } else if (this.#isClosed) {
        lane.begin(undefined);
        this.#advance(lane);
      } else if (lane.askAgain) {
        this.#ask(lane);
      } else {
        const waitMs = answer.kind === "wait" ? answer.ms + 1 : 0;
        lane.timer = setTimeout(() => this.#ask(lane), waitMs);
      }
    } catch (error) {
      lane.isAsking = false;
      this.#report(error);
      // The lane is an optimization: on errors, write without it.
      lane.begin(undefined);
      this.#keep(lane);
    }
  }

  #keep(lane: Lane): void {
    if (!this.#isClosed) {
      lane.timer = setInterval(() => {
        void this.#renew(lane);
      }, this.#holdMs / 3);
    }
    this.#advance(lane);
  }

  async #renew(lane: Lane): Promise<void> {
    try {
      const answer = await this.#store.renew(lane.name);
      if (answer.kind === "held") lane.noteWanted(answer.wanted ?? Infinity);
    } catch (error) {
      this.#report(error);
    }
  }

  #advance(lane: Lane): void {
    const next = lane.nextWriter();
    if (next === undefined) {
      void this.#release(lane);
      return;
    }
    next.enter();
    lane.reportWanted();
  }

  async #release(lane: Lane): Promise<void> {
    clearTimeout(lane.timer);
    const left = lane.end();
    try {
      await this.#store.leave(lane.name, left);
    } catch (error) {
      this.#report(error);
    }
    // Only after the answer: a request that overtook it would find the lane still held by this process.
    if (lane.waiting.length === 0) {
      this.#lanes.delete(lane.name);
    } else {
      lane.phase = "asking";
      this.#ask(lane);
    }
  }
}
