import type { AttemptRecord } from "@konverge/records";

/** Consecutive attempts in this process that seem to be self-triggered. */
const SUSPICIOUS = 5;
/** Keys whose records are read per second. */
const LOOKS = 5;
/** First and longest pause after a check without a finding: the loop may only have been too short. */
const PAUSE_MS = [2_000, 15_000] as const;
const MOST_KEYS = 10_000;

/** Selects the keys whose records are worth reading. Costs one map entry per attempt. */
export interface Suspicion {
  readonly note: (key: string, record: AttemptRecord) => void;
  /** Returns the keys to check now. */
  readonly take: () => string[];
}

export function createSuspicion(now: () => number = () => performance.now()): Suspicion {
  const seen = new Map<string, { count: number; looks: number; notBeforeMs: number }>();
  const waiting = new Set<string>();
  return {
    note: (key, record) => {
      const known = seen.get(key);
      if (!isSuspicious(record)) {
        if (known !== undefined && known.notBeforeMs <= now()) seen.delete(key);
        return;
      }
      const entry = known ?? { count: 0, looks: 0, notBeforeMs: 0 };
      entry.count += 1;
      // Keeps the most recent keys.
      seen.delete(key);
      seen.set(key, entry);
      if (entry.count >= SUSPICIOUS && entry.notBeforeMs <= now()) waiting.add(key);
      if (seen.size > MOST_KEYS) seen.delete(seen.keys().next().value ?? "");
    },
    take: () => {
      const taken = [...waiting].slice(0, LOOKS);
      for (const key of taken) {
        waiting.delete(key);
        const entry = seen.get(key);
        if (entry === undefined) continue;
        entry.notBeforeMs = now() + Math.min(PAUSE_MS[1], PAUSE_MS[0] * 2 ** entry.looks);
        entry.looks += 1;
      }
      return taken;
    },
  };
}

/** True if watches or a timer alone started the attempt, and its write or requeue will start the next one. */
function isSuspicious({ triggers, outcome, writes }: AttemptRecord): boolean {
  const again = writes.length > 0 || outcome === "requeueAfter";
  return (
    again &&
    triggers.every(
      ({ kind, by }) =>
        kind === "schedule" || kind === "owner" || (kind === "watch" && by !== "annotation"),
    )
  );
}
