/** Returns a number with a noun. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
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
