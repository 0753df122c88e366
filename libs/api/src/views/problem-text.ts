/** Returns a number with a noun. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** The start of a problem, if it is known. */
export function sinceMs(atMs: number | undefined): { readonly since?: string } {
  if (atMs === undefined || !Number.isFinite(atMs)) return {};
  return { since: new Date(atMs).toISOString() };
}

/** Longer texts are cut; the page of the object or run has the full text. */
const MAX_TEXT = 300;

export function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

/** Lists texts by how often they occur, most frequent first: `12x quota exceeded, 4x not a domain`. */
export function tallied(texts: readonly string[], shown = 3): string {
  const groups = [...Map.groupBy(texts, (text) => text)].toSorted(
    ([, one], [, other]) => other.length - one.length,
  );
  const named = groups.slice(0, shown).map(([text, { length }]) => `${length}x ${text}`);
  const rest = groups.length - shown;
  return cut([...named, ...(rest > 0 ? [`and ${rest} more`] : [])].join(", "));
}

/** Minutes of each of the two periods that a trend compares. */
const TREND_MINUTES = 5;
/** Smaller changes are noise. */
const TREND_SHARE = 0.25;

/** Compares the last minutes of a series with those before. Its last minute is incomplete and not counted. */
export function trendOf(minutes: readonly number[]): "rising" | "falling" | "steady" {
  const sum = (from: number, to: number) =>
    minutes.slice(from, to).reduce((all, each) => all + each, 0);
  const last = sum(-TREND_MINUTES - 1, -1);
  const before = sum(-2 * TREND_MINUTES - 1, -TREND_MINUTES - 1);
  if (last > before * (1 + TREND_SHARE)) return "rising";
  return last < before * (1 - TREND_SHARE) ? "falling" : "steady";
}
