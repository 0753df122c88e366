import type { AttemptRecord } from "@konverge/contracts";

/** Attempts in a row, seen by this process, that look as if nobody but we had caused them. */
const SUSPICIOUS = 5;
/** Keys looked at per second, and how long one that was in order is left alone. */
const LOOKS = 5;
const LEFT_ALONE_MS = 15_000;
const MOST_KEYS = 10_000;

/** Which keys are worth the reading of their records. Costs one entry of a map per attempt. */
export interface Suspicion {
  readonly note: (key: string, record: AttemptRecord) => void;
  /** Keys to look at now. */
  readonly take: () => string[];
}

export function createSuspicion(now: () => number = () => performance.now()): Suspicion {
  const seen = new Map<string, { count: number; notBeforeMs: number }>();
  const waiting = new Set<string>();
  return {
    note: (key, record) => {
      const known = seen.get(key);
      if (!isSuspicious(record)) {
        if (known !== undefined && known.notBeforeMs <= now()) seen.delete(key);
        return;
      }
      const entry = known ?? { count: 0, notBeforeMs: 0 };
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
        if (entry !== undefined) entry.notBeforeMs = now() + LEFT_ALONE_MS;
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
