import type { AttemptRecord } from "@konverge/records";

/** Attempts in a row, seen by this process, that look as if nobody but we had caused them. */
const SUSPICIOUS = 5;
/** Keys looked at per second. */
const LOOKS = 5;
/** How long one that was in order is left alone, at first and at most: a loop that was too young may be old enough soon. */
const LEFT_ALONE_MS = [2_000, 15_000] as const;
const MOST_KEYS = 10_000;

/** Which keys are worth the reading of their records. Costs one entry of a map per attempt. */
export interface Suspicion {
  readonly note: (key: string, record: AttemptRecord) => void;
  /** Keys to look at now. */
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
      // Those that were seen last are kept.
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
        entry.notBeforeMs = now() + Math.min(LEFT_ALONE_MS[1], LEFT_ALONE_MS[0] * 2 ** entry.looks);
        entry.looks += 1;
      }
      return taken;
    },
  };
}

/** Started by watches or a timer alone, and it will be again: it wrote, or asked for it. */
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
