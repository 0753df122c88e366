import { loopStateSchema, type AttemptRecord, type LoopState } from "@konverge/records";
import { nextDelay, type BackoffPolicy, type Trigger } from "@konverge/core";
import type { AttemptLease } from "@konverge/queue";
import { isOwnTrigger, isPerson, writtenVersions } from "./find-loop.ts";

/** Delay before the next start of a key in a reconcile loop. The key converges slowly instead of not at all. */
const BACKOFF: BackoffPolicy = {
  baseMs: 1_000,
  factor: 2,
  capMs: 60_000,
  steps: Infinity,
  jitter: { kind: "proportional", share: 0.1 },
};
/** Idle time after which a loop has ended. */
const FORGOTTEN_AFTER_MS = 600_000;
const NO_VERSIONS: ReadonlySet<string> = new Set();

/** A detected loop: the number of attempts or flips, the fields, the other managers. */
export interface FoundLoop {
  readonly kind: LoopState["kind"];
  readonly count: number;
  readonly paths: readonly string[];
  readonly managers: readonly string[];
}

export interface LoopThrottleOptions {
  readonly workerId: string;
  /** `report` and `accept`: nothing is delayed. */
  readonly loopProtection: "throttle" | "report" | "accept";
  /** The latest records of a key, newest first. */
  readonly readRecords: (attempt: AttemptLease) => Promise<readonly AttemptRecord[]>;
  readonly onEnded: (key: string, state: LoopState) => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

/**
 * Throttles keys in a reconcile loop, in all workers: the next start is delayed, never dropped. A user request or an external
 * change ends the throttling. For an ownership flip only a user request does, because all its changes are external.
 */
export class LoopThrottle {
  readonly #options: LoopThrottleOptions;
  readonly #now: () => number;
  #loops = new Map<string, LoopState>();
  /** Not sent yet; undefined for an ended loop. */
  #changes = new Map<string, string | undefined>();

  constructor(options: LoopThrottleOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Delay of the start of an attempt, in ms; 0 to start now. Makes no calls unless the key is throttled. */
  putOffMs(attempt: AttemptLease): number | Promise<number> {
    const state = this.#loops.get(attempt.id);
    if (state === undefined) return 0;
    if (attempt.triggers.some(isPerson)) {
      this.#end(attempt.id, state);
      return 0;
    }
    if (this.#options.loopProtection !== "throttle") return 0;
    // Checked even if the start is due: an external change ends the loop at any time.
    const open =
      state.kind === "ownershipFlip"
        ? []
        : attempt.triggers.filter((trigger) => !isOwnTrigger(trigger, NO_VERSIONS));
    return open.length === 0 ? this.#restMs(state) : this.#look(attempt, state, open);
  }

  stateOf(key: string): LoopState | undefined {
    return this.#loops.get(key);
  }

  start(key: string, found: FoundLoop): void {
    if (this.#loops.has(key)) return;
    const sinceMs = this.#now();
    const { kind, count } = found;
    const what = { kind, count, paths: [...found.paths], managers: [...found.managers] };
    const { workerId: worker, loopProtection } = this.#options;
    const protection = loopProtection === "throttle" ? "throttle" : "report";
    const untilMs = sinceMs + this.#delayMs(0);
    this.#set(key, { ...what, step: 0, sinceMs, untilMs, worker, protection });
  }

  /** Called for each attempt that ran. */
  ended(key: string, record: AttemptRecord): void {
    const state = this.#loops.get(key);
    if (state === undefined) return;
    if (!continues(state, record)) {
      // During contention the other manager may only be slower; the loop ends by age.
      if (state.kind !== "ownershipFlip") this.#end(key, state);
      return;
    }
    const step = state.step + 1;
    const untilMs = this.#now() + this.#delayMs(step);
    this.#set(key, { ...state, step, count: state.count + 1, untilMs });
  }

  /** Returns the changes since the last call, for other workers. */
  takeChanges(): Map<string, string | undefined> {
    for (const [key, state] of this.#loops) {
      if (state.untilMs + FORGOTTEN_AFTER_MS < this.#now()) this.#end(key, state);
    }
    const taken = this.#changes;
    this.#changes = new Map();
    return taken;
  }

  /** Takes back changes that could not be sent. */
  putBack(unsent: ReadonlyMap<string, string | undefined>): void {
    this.#changes = new Map([...unsent, ...this.#changes]);
  }

  /** Adopts the state that all workers share. */
  learn(shared: ReadonlyMap<string, string>): void {
    const learned = new Map<string, LoopState>();
    for (const [key, text] of shared) {
      const parsed = loopStateSchema.safeParse(JSON.parse(text));
      // Skips the state of another version.
      if (parsed.success) learned.set(key, parsed.data);
    }
    // Local changes since then are newer.
    for (const [key, change] of this.#changes) {
      const state = this.#loops.get(key);
      if (change === undefined) learned.delete(key);
      else if (state !== undefined) learned.set(key, state);
    }
    this.#loops = learned;
  }

  /** `open`: triggers that may be caused by own writes. */
  async #look(attempt: AttemptLease, state: LoopState, open: readonly Trigger[]): Promise<number> {
    // The last writes may be those of another worker, stored by `end` before this attempt began.
    // Without the records it counts as an external change: an extra run is harmless.
    const records = await this.#options.readRecords(attempt).catch((): AttemptRecord[] => []);
    const versions = writtenVersions(records);
    if (open.every((trigger) => isOwnTrigger(trigger, versions))) return this.#restMs(state);
    this.#end(attempt.id, state);
    return 0;
  }

  #set(key: string, state: LoopState): void {
    this.#loops.set(key, state);
    this.#changes.set(key, JSON.stringify(state));
  }

  #end(key: string, state: LoopState): void {
    this.#loops.delete(key);
    this.#changes.set(key, undefined);
    this.#options.onEnded(key, state);
  }

  #restMs({ untilMs }: LoopState): number {
    return Math.max(0, untilMs - this.#now());
  }

  #delayMs(step: number): number {
    const next = nextDelay(BACKOFF, step, this.#options.random ?? Math.random);
    return next.kind === "wait" ? next.afterMs : BACKOFF.capMs;
  }
}

function continues(state: LoopState, record: AttemptRecord): boolean {
  switch (state.kind) {
    case "selfTriggered":
      return record.writes.length > 0;
    case "requeue":
      return record.outcome === "requeueAfter" && record.writes.length === 0;
    case "ownershipFlip":
      return record.writes.some(({ fieldsTakenOver = [] }) =>
        fieldsTakenOver.some(({ manager, path }) => isPart(state, manager, path)),
      );
  }
}

function isPart({ managers, paths }: LoopState, manager: string, path: string): boolean {
  return managers.includes(manager) && paths.includes(path);
}
