const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** How long ago, in its largest unit: `5m`; what is to come is `in 5m`. Tables are for people, `-o json` has the time itself. */
export function age(iso: string | undefined, nowMs: number = Date.now()): string {
  if (iso === undefined) return "-";
  const ms = nowMs - Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  const text = span(Math.abs(ms));
  return ms < -1_000 ? `in ${text}` : text;
}

/** `850ms`, `12s`, `5m`, `3h`, `2d`. */
export function span(ms: number): string {
  const [unit, size] = UNITS.find(([, least]) => ms >= least) ?? ["ms", 1];
  return `${Math.round(ms / size)}${unit}`;
}
