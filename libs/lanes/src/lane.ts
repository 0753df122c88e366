import { CALL_PRIORITIES, parseJson, type CallPriority, type JsonObject } from "@konverge/core";
import type { LaneLeft } from "./lane-store.ts";
import type { PassedObject } from "./scripts/take-lane.ts";

/** An object without a write of ours for this long is read again. */
export const CARRY_MS = 2_000;
/** With writers outside the lane, a failed attempt costs as much as the read that a reused object saves. */
export const CONTESTED_CARRY_MS = 20;
/** Turns that a process takes in a row, and for how long, before it passes the lane to another process. */
const TURNS_IN_A_ROW = 16;
const IN_A_ROW_MS = 50;
/** Larger objects cost Redis more than a read costs the API server. */
const MAX_CARRY_CHARS = 64 * 1024;

/** A writer that waits for its turn, or has it. */
export interface LaneWriter {
  readonly priority: CallPriority;
  /** Starts the turn. */
  readonly enter: () => void;
  readonly onWanted: ((priority: CallPriority) => void) | undefined;
}

/** Lower is more urgent. */
export const rankOf = (priority: CallPriority): number => CALL_PRIORITIES.indexOf(priority);

/** The state of one lane in this process. */
export class Lane {
  readonly name: string;
  /** In order. */
  readonly waiting: LaneWriter[] = [];
  /** The rank with which this process asked for the lane. */
  askedRank = Infinity;
  phase: "asking" | "held" | "leaving" = "asking";
  /** True while a request to Redis is in flight, and whether another one is due after it. */
  isAsking = false;
  askAgain = false;
  timer: ReturnType<typeof setTimeout> | undefined;
  #carry: { readonly object: JsonObject; readonly atMs: number } | undefined;
  #stranger = false;
  #writer: LaneWriter | undefined;
  /** Of the writers in other processes. */
  #wantedRank = Infinity;
  #heldSinceMs = 0;
  #turns = 0;

  constructor(name: string) {
    this.name = name;
  }

  begin(carry: PassedObject | undefined): void {
    clearTimeout(this.timer);
    this.phase = "held";
    this.#turns = 0;
    this.#wantedRank = Infinity;
    this.#stranger = false;
    this.#heldSinceMs = performance.now();
    this.#carry =
      carry === undefined
        ? undefined
        : { object: parseJson(carry.text) as JsonObject, atMs: this.#heldSinceMs - carry.ageMs };
  }

  /** The writer whose turn is next; undefined when the process has to pass the lane on. The first turn is always granted. */
  nextWriter(): LaneWriter | undefined {
    const isOver =
      this.#turns >= TURNS_IN_A_ROW || performance.now() - this.#heldSinceMs >= IN_A_ROW_MS;
    if (this.#turns > 0 && isOver) return undefined;
    const next = this.waiting.shift();
    if (next !== undefined) this.#turns += 1;
    this.#writer = next;
    return next;
  }

  /** The most urgent rank of the writers that wait in this process. */
  get waitingRank(): number {
    return Math.min(Infinity, ...this.waiting.map(({ priority }) => rankOf(priority)));
  }

  /** Notes the most urgent rank of the writers that wait in other processes. */
  noteWanted(rank: number): void {
    this.#wantedRank = rank;
    this.reportWanted();
  }

  /** Passes the most urgent priority that waits to the writer whose turn it is. */
  reportWanted(): void {
    const wanted = CALL_PRIORITIES[Math.min(this.waitingRank, this.#wantedRank)];
    if (wanted !== undefined) this.#writer?.onWanted?.(wanted);
  }

  noteWrite(object: JsonObject | undefined, stranger: boolean): void {
    this.#stranger ||= stranger;
    this.#carry = object === undefined ? undefined : { object, atMs: performance.now() };
  }

  /** The object of the last write, if it is recent enough to be written without a read. */
  freshCarry(): JsonObject | undefined {
    const longestMs = this.#stranger ? CONTESTED_CARRY_MS : CARRY_MS;
    if (this.#carry === undefined || performance.now() - this.#carry.atMs > longestMs) {
      return undefined;
    }
    return this.#carry.object;
  }

  /** Ends the hold and returns what the next process receives. */
  end(): LaneLeft {
    const left = { carry: this.#carryText(), stranger: this.#stranger };
    this.#carry = undefined;
    this.#writer = undefined;
    this.askedRank = Infinity;
    this.phase = "leaving";
    return left;
  }

  #carryText(): PassedObject | undefined {
    if (this.#carry === undefined) return undefined;
    const text = JSON.stringify(this.#carry.object);
    if (text.length > MAX_CARRY_CHARS) return undefined;
    return { text, ageMs: Math.max(0, Math.round(performance.now() - this.#carry.atMs)) };
  }
}
