import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";

/** `late`: an update is overdue. `stale`: the data shown may be wrong. */
type FreshnessLevel = "fresh" | "late" | "stale";

export interface Freshness {
  /** Unix ms of the last successful response. */
  readonly atMs: number;
  readonly level: FreshnessLevel;
}

interface Source {
  readonly atMs: number;
  readonly everyMs: number;
}

/** Shortest ages, so that one slow response changes nothing. */
const LATE_MS = 15_000;
const STALE_MS = 30_000;

const sources: Signal<ReadonlyMap<symbol, Source>> = signal(new Map());
const second: Signal<number> = signal(Date.now());
window.setInterval(() => {
  if (!document.hidden) second.value = Date.now();
}, 1_000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) second.value = Date.now();
});

/** The age of what the page shows; undefined without data. */
export const freshness: ReadonlySignal<Freshness | undefined> = computed(() => {
  const ages = [...sources.value.values()].map((source) => ({
    atMs: source.atMs,
    everyMs: source.everyMs,
    level: levelOf(source, second.value - source.atMs),
  }));
  // The most frequent source counts, unless another one is overdue.
  return ages.toSorted(
    (one, other) =>
      LEVELS.indexOf(other.level) - LEVELS.indexOf(one.level) ||
      one.everyMs - other.everyMs ||
      one.atMs - other.atMs,
  )[0];
});

const LEVELS: readonly FreshnessLevel[] = ["fresh", "late", "stale"];

function levelOf({ everyMs }: Source, ageMs: number): FreshnessLevel {
  // Data that is read once shows its age, and the user can reload it.
  if (everyMs === 0) return "fresh";
  if (ageMs >= Math.max(STALE_MS, 3 * everyMs)) return "stale";
  return ageMs >= Math.max(LATE_MS, 2 * everyMs) ? "late" : "fresh";
}

/** Age of the page in ms. */
export function ageOf({ atMs }: Freshness): number {
  return Math.max(0, second.value - atMs);
}

/** Notes a successful response. `everyMs` is 0 for data that is read once. */
export function noteFresh(id: symbol, everyMs: number): void {
  const atMs = Date.now();
  second.value = Math.max(second.value, atMs);
  sources.value = new Map(sources.value).set(id, { atMs, everyMs });
}

/** Ends a source, for example when its page is left. */
export function forgetFresh(id: symbol): void {
  if (!sources.value.has(id)) return;
  const left = new Map(sources.value);
  left.delete(id);
  sources.value = left;
}
