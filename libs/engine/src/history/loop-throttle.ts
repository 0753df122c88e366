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

/**
 * Throttles keys in a reconcile loop, in all workers: the next start is delayed, never dropped. A user request or an external
 * change ends the throttling. For an ownership flip only a user request does, because all its changes are external.
 */
export interface LoopThrottle {
  /** Delay of the start of an attempt, in ms; 0 to start now. Makes no calls unless the key is throttled. */
  readonly putOffMs: (attempt: AttemptLease) => number | Promise<number>;
  readonly stateOf: (key: string) => LoopState | undefined;
  readonly start: (key: string, found: FoundLoop) => void;
  /** Called for each attempt that ran. */
  readonly ended: (key: string, record: AttemptRecord) => void;
  /** Returns the changes since the last call, for other workers. */
  readonly takeChanges: () => Map<string, string | undefined>;
  /** Takes back changes that could not be sent. */
  readonly putBack: (unsent: ReadonlyMap<string, string | undefined>) => void;
  /** Adopts the state that all workers share. */
  readonly learn: (shared: ReadonlyMap<string, string>) => void;
}

/** A detected loop: the number of attempts or flips, the fields, the other managers. */
export interface FoundLoop {
  readonly kind: LoopState["kind"];
  readonly count: number;
  readonly paths: readonly string[];
  readonly managers: readonly string[];
}

export interface LoopThrottleOptions {
  readonly workerId: string;
  /** `report`: nothing is delayed. */
  readonly loopProtection: "throttle" | "report";
  /** The latest records of a key, newest first. */
  readonly readRecords: (attempt: AttemptLease) => Promise<readonly AttemptRecord[]>;
  readonly onEnded: (key: string, state: LoopState) => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

export function createLoopThrottle(options: LoopThrottleOptions): LoopThrottle {
  const { workerId, readRecords, onEnded, now = Date.now, random = Math.random } = options;
  let loops = new Map<string, LoopState>();
  let changes = new Map<string, string | undefined>();

  const set = (key: string, state: LoopState) => {
    loops.set(key, state);
    changes.set(key, JSON.stringify(state));
  };
  const end = (key: string, state: LoopState) => {
    loops.delete(key);
    changes.set(key, undefined);
    onEnded(key, state);
  };
  const delay = (step: number) => {
    const next = nextDelay(BACKOFF, step, random);
    return next.kind === "wait" ? next.afterMs : BACKOFF.capMs;
  };

  const restMs = ({ untilMs }: LoopState) => Math.max(0, untilMs - now());
  /** `open`: triggers that may be caused by own writes. */
  const look = async (attempt: AttemptLease, state: LoopState, open: readonly Trigger[]) => {
    // The last writes may be those of another worker, stored by `end` before this attempt began.
    // Without the records it counts as an external change: an extra run is harmless.
    const records = await readRecords(attempt).catch((): AttemptRecord[] => []);
    const versions = writtenVersions(records);
    if (open.every((trigger) => isOwnTrigger(trigger, versions))) return restMs(state);
    end(attempt.id, state);
    return 0;
  };

  return {
    putOffMs: (attempt) => {
      const state = loops.get(attempt.id);
      if (state === undefined) return 0;
      if (attempt.triggers.some(isPerson)) {
        end(attempt.id, state);
        return 0;
      }
      if (options.loopProtection === "report") return 0;
      // Checked even if the start is due: an external change ends the loop at any time.
      const open =
        state.kind === "ownershipFlip"
          ? []
          : attempt.triggers.filter((trigger) => !isOwnTrigger(trigger, NO_VERSIONS));
      return open.length === 0 ? restMs(state) : look(attempt, state, open);
    },
    stateOf: (key) => loops.get(key),
    start: (key, found) => {
      if (loops.has(key)) return;
      const atMs = now();
      const { kind, count } = found;
      const what = { kind, count, paths: [...found.paths], managers: [...found.managers] };
      set(key, { ...what, step: 0, sinceMs: atMs, untilMs: atMs + delay(0), worker: workerId });
    },
    ended: (key, record) => {
      const state = loops.get(key);
      if (state === undefined) return;
      if (!goesOn(state, record)) {
        // During contention the other manager may only be slower; the loop ends by age.
        if (state.kind !== "ownershipFlip") end(key, state);
        return;
      }
      const step = state.step + 1;
      set(key, { ...state, step, count: state.count + 1, untilMs: now() + delay(step) });
    },
    takeChanges: () => {
      for (const [key, state] of loops) {
        if (state.untilMs + FORGOTTEN_AFTER_MS < now()) end(key, state);
      }
      const taken = changes;
      changes = new Map();
      return taken;
    },
    putBack: (unsent) => {
      changes = new Map([...unsent, ...changes]);
    },
    learn: (shared) => {
      const learned = new Map<string, LoopState>();
      for (const [key, text] of shared) {
        const parsed = loopStateSchema.safeParse(JSON.parse(text));
        // Skips the state of another version.
        if (parsed.success) learned.set(key, parsed.data);
      }
      // Local changes since then are newer.
      for (const [key, change] of changes) {
        const state = loops.get(key);
        if (change === undefined) learned.delete(key);
        else if (state !== undefined) learned.set(key, state);
      }
      loops = learned;
    },
  };
}

function goesOn(state: LoopState, record: AttemptRecord): boolean {
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
